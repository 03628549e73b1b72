// @ts-check
/** A form from a schema, or the same as JSON: a value that the form cannot show exactly stays JSON, as it was typed. */
import { fill, h, tabs } from './dom.js';
import { id, MOST_EDITORS, value } from './field.js';
import { difference, isObject, parse, problemOf, write } from './json.js';
import { resolve, shape, typesOf } from './schema.js';

/** @typedef {{mode: 'form' | 'json', text: string}} Draft @typedef {import('./field.js').Complete} Complete */

/**
 * A whole form: fields, or the same as a draft of JSON that keeps what was typed.
 * @param {unknown} schema
 * @param {{change?: () => void, completeFor?: (name: string) => Complete | undefined, initial?: Draft}} [options]
 */
export function form(schema, options = {}) {
    const root = isObject(schema) ? schema : {};
    const change = () => {
        judge();
        options.change?.();
    };
    const budget = { left: MOST_EDITORS };
    const whole = resolve(root, root);
    const fields = value(
        typesOf(whole).length || shape(root, root).choices ? whole : { ...whole, type: 'object' },
        root,
        { name: 'arguments', id: id(), change, depth: 0, flat: true, budget, completeFor: options.completeFor }
    );
    const area = h('textarea', { 'aria-label': 'Arguments as JSON', rows: '10', spellcheck: 'false', oninput: change });
    const told = h('p.small', { role: 'status' });
    const isEmpty = !Object.keys(whole.properties ?? {}).length && !shape(root, root).choices;
    /** @type {'form' | 'json'} */
    let mode = 'form';
    const nothing = h('p.soft', null, 'No arguments are declared.');
    const shown = h('div.column', null, isEmpty ? nothing : null, fields.element);
    const bar = tabs(
        'How to edit',
        [
            ['form', 'Form'],
            ['json', 'JSON']
        ],
        name => show(name === 'json' ? 'json' : 'form')
    );
    const isJson = () => !problemOf(area.value);
    function judge() {
        if (mode === 'form') {
            told.textContent = fields.problems().slice(0, 20).join('; ');
            return;
        }
        const problem = problemOf(area.value);
        told.textContent = problem && `${problem}. It stays as you typed it.`;
    }
    /**
     * Shows a text in the fields, if they can show it as it is. @param {string} text @returns {string | null} why not
     */
    function accept(text) {
        let given;
        try {
            given = parse(text, { isUnique: true });
        } catch (error) {
            return `Not JSON yet: ${/** @type {Error} */ (error).message}. It stays as you typed it.`;
        }
        const isExact = fields.set(given);
        const place = difference(fields.read(), given);
        if (isExact && place === null) return null;
        return `The form cannot show ${place ?? 'this'} without changing it. It stays JSON, as you typed it.`;
    }
    /** @param {'form' | 'json'} next */
    function show(next) {
        if (next === mode) return;
        const why = next === 'form' ? accept(area.value) : null;
        if (next === 'json') area.value = write(fields.read());
        if (why === null) mode = next;
        draw();
        if (why !== null) told.textContent = why;
        options.change?.();
    }
    const place = h('div');
    function draw() {
        bar.choose(mode);
        fill(place, mode === 'form' ? shown : area);
        judge();
    }
    const { initial } = options;
    if (initial) {
        area.value = initial.text;
        if (initial.mode === 'json' || accept(initial.text) !== null) mode = 'json';
    }
    draw();
    const text = () => (mode === 'json' ? area.value : write(fields.read()));
    return {
        element: h('div.column', null, bar.element, place, told),
        /** The arguments as JSON text, exactly as typed. */
        text,
        /** What to give to `initial` to continue. @returns {Draft} */
        draft: () => ({ mode, text: text() }),
        isJson: () => mode === 'form' || isJson(),
        problems: () => (mode === 'form' ? fields.problems() : [])
    };
}
