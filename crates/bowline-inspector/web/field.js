// @ts-check
/**
 * Editors of values. A field is unset, null, or has a value: three states, and only the person changes them. An editor
 * never repairs: one that cannot show a value exactly says so.
 */
import { fill, h, textOf } from './dom.js';
import { difference, isObject, Num, parse, put, write } from './json.js';
import { kind, resolve, shape, typesOf } from './schema.js';

/** @typedef {import('./schema.js').Schema} Schema */
/**
 * Something that edits a value. `set` shows a value, and says whether `read` would return exactly that.
 * @typedef {{read: () => any, problems: () => string[], element: HTMLElement, set: (value: any) => boolean}} Editor
 */
/**
 * @typedef {(value: string) => Promise<string[]>} Complete
 * @typedef {{name: string, id: string, required?: boolean, change: () => void, complete?: Complete,
 *   completeFor?: (name: string) => Complete | undefined, depth: number, budget: {left: number},
 *   flat?: boolean}} Options
 */

/** Not there at all. */
export const UNSET = Symbol('unset');
/** The most editors of a form; what is beyond is edited as JSON. */
export const MOST_EDITORS = 400;
/** The most items or keys that a form shows of a list or a map. */
const MOST_ITEMS = 200;
const MOST_DEPTH = 12;
let ids = 0;
export const id = () => `f${ids++}`;

/**
 * An editor with its name, its description and its state. @param {unknown} schema @param {unknown} root
 * @param {Options} given
 */
export function field(schema, root, given) {
    const { it, types, choices, nullable } = shape(schema, root);
    const options = { ...given, id: id() };
    const { name } = options;
    const isPlain = Boolean(
        it.enum ||
        it.const !== undefined ||
        isTitled(choices) ||
        (!choices && ['string', 'integer', 'number', 'boolean'].includes(types[0]))
    );
    /** @type {'unset' | 'null' | 'value'} */
    let state = 'unset';
    let isBlank = true;
    /** @type {Editor | null} */
    let inner = null;
    const touch = () => {
        isBlank = false;
        if (state !== 'value') states.value = state = 'value';
        options.change();
    };
    const make = () => (inner ??= value(schema, root, { ...options, change: touch }));
    const place = h('div');
    const choose = (/** @type {typeof state} */ next) => {
        state = next;
        draw();
        options.change();
    };
    const states = h(
        'select.state',
        { 'aria-label': `${name}: unset, null or value`, onchange: () => choose(states.value) },
        ['unset', 'null', 'value'].map(one => h('option', { value: one }, one))
    );
    const opener = h('button.button.small', { type: 'button', onclick: () => choose('value') }, `Fill in ${name}`);
    function draw() {
        states.value = state;
        if (state === 'null') fill(place);
        else if (state === 'unset' && !(isPlain && isBlank)) fill(place, isPlain ? null : opener);
        else fill(place, make().element);
    }
    /** @param {any} value */
    function set(value) {
        let isExact = true;
        if (value === UNSET) state = 'unset';
        else if (value === null) state = 'null';
        else {
            state = 'value';
            isBlank = false;
            isExact = make().set(value);
        }
        draw();
        return isExact;
    }
    const isInitial =
        it.default !== undefined ? set(it.default) : it.const !== undefined && options.required && set(it.const);
    if (!isInitial) {
        state = options.required && !isPlain && options.depth <= 2 ? 'value' : 'unset';
        isBlank = true;
    }
    draw();
    const element = h(
        'div.field',
        { 'data-field': name },
        h(
            'div.row',
            null,
            h(
                'label.name',
                { for: options.id },
                name,
                options.required ? h('span.tag', null, 'required') : null,
                h('span.soft.small', null, kind(schema, root))
            ),
            states
        ),
        it.description ? h('p.soft.small', null, textOf(it.description).slice(0, 2000)) : null,
        place
    );
    const read = () => (state === 'unset' ? UNSET : state === 'null' ? null : make().read());
    return {
        element,
        set,
        read,
        problems: () => {
            if (state === 'null') return nullable || !types.length ? [] : [`${name} must not be null`];
            if (read() === UNSET) return options.required ? [`${name} is required`] : [];
            return make().problems();
        }
    };
}

/** @param {Schema[] | undefined} choices */
const isTitled = choices => Boolean(choices?.length && choices.every(one => isObject(one) && one.const !== undefined));

/** @param {unknown} schema @param {unknown} root @param {Options} options @returns {Editor} */
export function value(schema, root, options) {
    if (options.budget.left-- <= 0 || options.depth > MOST_DEPTH) return raw(options);
    const { it, types, choices } = shape(schema, root);
    if (Array.isArray(it.enum)) return choice(it.enum, it.enumNames, options);
    if (it.const !== undefined) return choice([it.const], undefined, options);
    if (choices && isTitled(choices))
        return choice(
            choices.map(one => one.const),
            choices.map(one => one.title),
            options
        );
    if (choices) return several(it, choices, root, options);
    switch (types[0]) {
        case 'string':
            return text(it, options);
        case 'integer':
        case 'number':
            return number(types[0], options);
        case 'boolean':
            return choice([true, false], undefined, options);
        case 'array':
            return list(it, root, options);
        case 'object':
            return object(it, root, options);
        default:
            return raw(options);
    }
}

/** @param {Schema} it @param {Options} options @returns {Editor} */
function text(it, options) {
    const { complete } = options;
    const suggestions = complete ? h('datalist', { id: `${options.id}-list` }) : null;
    const suggest = async () => {
        const before = input.value;
        const found = (await complete?.(before).catch(() => [])) ?? [];
        if (input.value === before)
            fill(
                suggestions,
                found.slice(0, 100).map(one => h('option', { value: one }))
            );
    };
    const typed = () => {
        options.change();
        if (suggestions) suggest();
    };
    const make = (/** @type {boolean} */ isLong) =>
        h(isLong ? 'textarea' : 'input', {
            id: options.id,
            type: isLong ? null : 'text',
            spellcheck: 'false',
            autocomplete: 'off',
            list: suggestions ? `${options.id}-list` : null,
            oninput: typed,
            onpaste: (/** @type {ClipboardEvent} */ event) => {
                const pasted = event.clipboardData?.getData('text/plain') ?? '';
                // A line of input would join the lines.
                if (isLong || !pasted.includes('\n')) return;
                event.preventDefault();
                const before = input.value;
                const [start, end] = [input.selectionStart, input.selectionEnd];
                grow();
                input.value = before.slice(0, start) + pasted.replace(/\r\n/g, '\n') + before.slice(end);
                input.focus();
                options.change();
            }
        });
    const isLong = !suggestions && ((it.maxLength ?? 0) > 200 || /text|body|content|markdown|code/i.test(options.name));
    let input = make(isLong);
    const grow = () => {
        if (input.tagName === 'TEXTAREA') return;
        const next = make(true);
        if (input.hasAttribute('aria-label')) next.setAttribute('aria-label', input.getAttribute('aria-label'));
        input.replaceWith(next);
        input = next;
    };
    if (suggestions) input.addEventListener('focus', suggest, { once: true });
    const isFile = it.contentEncoding === 'base64' || it.format === 'byte';
    const file = isFile
        ? h('input', {
              type: 'file',
              'aria-label': `${options.name}: file`,
              onchange: async () => {
                  const bytes = new Uint8Array(await file.files[0].arrayBuffer());
                  let binary = '';
                  for (const byte of bytes) binary += String.fromCharCode(byte);
                  input.value = btoa(binary);
                  options.change();
              }
          })
        : null;
    return {
        element: h('div', null, input, suggestions, file),
        read: () => input.value,
        problems: () => [],
        set: given => {
            if (typeof given !== 'string') return false;
            if (given.includes('\n')) grow();
            input.value = given;
            return input.value === given;
        }
    };
}

/** @param {string} type @param {Options} options @returns {Editor} */
function number(type, options) {
    const mode = type === 'integer' ? 'numeric' : 'decimal';
    const input = h('input', {
        id: options.id,
        type: 'text',
        inputmode: mode,
        autocomplete: 'off',
        oninput: options.change
    });
    const isNumber = () => /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(input.value.trim());
    const read = () => (isNumber() ? new Num(input.value.trim()) : input.value);
    return {
        element: input,
        read,
        problems: () =>
            isNumber() ? [] : [`${options.name} is not a number: ${JSON.stringify(input.value)} would be sent as text`],
        set: given => {
            input.value = typeof given === 'object' && !(given instanceof Num) ? '' : String(given);
            return difference(read(), given) === null;
        }
    };
}

/**
 * @param {any[]} values @param {(string | undefined)[] | undefined} names @param {Options} options @returns {Editor}
 */
function choice(values, names, options) {
    const real = values.slice(0, 5000).filter(one => one !== null);
    const word = (/** @type {any} */ one, /** @type {number} */ at) =>
        names?.[at] ?? (typeof one === 'string' ? one : write(one));
    const select = h(
        'select',
        { id: options.id, onchange: options.change },
        h('option', { value: '' }, '–'),
        real.map((one, at) => h('option', { value: String(at) }, word(one, at)))
    );
    return {
        element: select,
        read: () => (select.value === '' ? UNSET : real[Number(select.value)]),
        problems: () => [],
        set: given => {
            const at = real.findIndex(one => difference(one, given) === null);
            select.value = at < 0 ? '' : String(at);
            return at >= 0;
        }
    };
}

/** @param {Schema} it @param {Schema[]} choices @param {unknown} root @param {Options} options @returns {Editor} */
function several(it, choices, root, options) {
    const { anyOf, oneOf, ...rest } = it;
    const shapes = choices.map(one => (rest.properties ? resolve({ allOf: [one, rest] }, root) : resolve(one, root)));
    const editors = /** @type {Editor[]} */ ([]);
    const name = (/** @type {Schema} */ one, /** @type {number} */ at) =>
        one.title ??
        Object.values(one.properties ?? {})
            .map(p => p?.const)
            .find(Boolean) ??
        one.description ??
        typesOf(one)[0] ??
        `option ${at + 1}`;
    const select = h(
        'select',
        {
            id: options.id,
            onchange: () => {
                draw();
                options.change();
            }
        },
        shapes.map((one, at) => h('option', { value: String(at) }, textOf(name(one, at)).slice(0, 200)))
    );
    const place = h('div.nested');
    const of = (/** @type {number} */ at) =>
        (editors[at] ??= value(shapes[at], root, { ...options, id: id(), depth: options.depth + 1 }));
    const current = () => of(Number(select.value));
    const draw = () => {
        fill(place, current().element);
        for (const input of place.querySelectorAll('input, select, textarea')) {
            if (!place.contains(input.closest('.field'))) input.setAttribute('aria-label', options.name);
        }
    };
    draw();
    return {
        element: h('div.column', null, select, place),
        read: () => current().read(),
        problems: () => current().problems(),
        set: given => {
            const at = shapes.findIndex(
                (_, index) => of(index).set(given) && difference(of(index).read(), given) === null
            );
            select.value = String(Math.max(0, at));
            draw();
            return at >= 0;
        }
    };
}

/** @param {string} label @param {() => void} onclick */
const remover = (label, onclick) => h('button.button.small', { type: 'button', 'aria-label': label, onclick }, '✕');

/** @param {Schema} it @param {unknown} root @param {Options} options @returns {Editor} */
function list(it, root, options) {
    /** @type {Editor[]} */
    let items = [];
    const place = h('div.nested');
    const remove = (/** @type {number} */ at) => () => {
        items.splice(at, 1);
        draw();
        options.change();
    };
    const draw = () =>
        fill(
            place,
            items.map((one, at) =>
                h(
                    'div.row.value',
                    null,
                    h('div.grow', null, one.element),
                    remover(`Remove ${options.name} ${at + 1}`, remove(at))
                )
            )
        );
    const push = (/** @type {any} */ given) => {
        const at = items.length;
        const schema = it.prefixItems?.[at] ?? it.items ?? {};
        const one = field(schema, root, {
            ...options,
            name: `${options.name} ${at + 1}`,
            required: true,
            depth: options.depth + 1,
            flat: false,
            complete: undefined
        });
        items.push(one);
        return given === UNSET || one.set(given);
    };
    const add = h(
        'button.button.small',
        {
            id: options.id,
            type: 'button',
            onclick: () => {
                push(UNSET);
                draw();
                options.change();
            }
        },
        `Add to ${options.name}`
    );
    return {
        element: h('div.column', null, place, h('div', null, add)),
        read: () => items.map(one => one.read()).filter(one => one !== UNSET),
        problems: () => items.flatMap(one => one.problems()),
        set: given => {
            items = [];
            const isExact = Array.isArray(given) && given.length <= MOST_ITEMS && given.map(push).every(Boolean);
            draw();
            return isExact;
        }
    };
}

/** @param {Schema} it @param {unknown} root @param {Options} options @returns {Editor} */
function object(it, root, options) {
    /** @type {Map<string, Editor>} */
    const fields = new Map();
    for (const [name, schema] of Object.entries(it.properties ?? {}).slice(0, MOST_ITEMS)) {
        const required = Array.isArray(it.required) && it.required.includes(name);
        fields.set(
            name,
            field(schema, root, {
                ...options,
                name,
                required,
                depth: options.depth + 1,
                complete: options.completeFor?.(name),
                flat: false
            })
        );
    }
    /** @type {{key: HTMLInputElement, one: Editor}[]} */
    let more = [];
    const isOpen = it.additionalProperties !== false && (it.additionalProperties || !fields.size);
    const place = h('div.nested', { hidden: true });
    const remove = (/** @type {number} */ at) => () => {
        more.splice(at, 1);
        draw();
        options.change();
    };
    // What is not declared may be wrong, but it would be sent, so it is shown.
    const draw = () => {
        place.hidden = !more.length;
        fill(
            place,
            more.map((entry, at) =>
                h(
                    'div.row.value',
                    null,
                    entry.key,
                    h('div.grow', null, entry.one.element),
                    remover(`Remove ${entry.key.value}`, remove(at))
                )
            )
        );
    };
    const push = (/** @type {string} */ name, /** @type {any} */ given) => {
        const key = h('input', {
            type: 'text',
            value: name,
            'aria-label': `${options.name}: key`,
            oninput: options.change
        });
        const schema = isObject(it.additionalProperties) ? it.additionalProperties : {};
        const one = field(schema, root, {
            ...options,
            name: name || 'value',
            required: true,
            depth: options.depth + 1,
            flat: false,
            complete: undefined
        });
        more.push({ key, one });
        return key.value === name && (given === UNSET || one.set(given));
    };
    const add = h(
        'button.button.small',
        {
            type: 'button',
            id: fields.size ? null : options.id,
            onclick: () => {
                push('', UNSET);
                draw();
                options.change();
            }
        },
        `Add a key to ${options.name}`
    );
    const nested = h(
        options.flat ? 'div.column' : 'div.nested',
        { hidden: !fields.size },
        [...fields.values()].map(one => one.element)
    );
    return {
        element: h('div.column', null, nested, place, isOpen ? h('div', null, add) : null),
        read: () => {
            const all = {};
            for (const [name, one] of [
                ...fields,
                ...more.map(({ key, one }) => /** @type {const} */ ([key.value, one]))
            ]) {
                const got = one.read();
                if (got !== UNSET) put(all, name, got);
            }
            return all;
        },
        problems: () => {
            const keys = [...fields.keys(), ...more.map(({ key }) => key.value)];
            const twice = keys
                .filter((key, at) => keys.indexOf(key) < at)
                .map(key => `${key} is there twice: the last one counts`);
            const unknown =
                it.additionalProperties === false ? more.map(({ key }) => `${key.value} is not declared`) : [];
            return [
                ...[...fields.values(), ...more.map(({ one }) => one)].flatMap(one => one.problems()),
                ...twice,
                ...unknown
            ];
        },
        set: given => {
            more = [];
            const isFit = isObject(given) && Object.keys(given).length <= MOST_ITEMS;
            const own = isFit ? given : {};
            const known = [...fields].map(([name, one]) => one.set(Object.hasOwn(own, name) ? own[name] : UNSET));
            const others = Object.entries(own)
                .filter(([name]) => !fields.has(name))
                .map(([name, one]) => push(name, one));
            draw();
            return isFit && [...known, ...others].every(Boolean);
        }
    };
}

/** Any JSON. @param {Options} options @returns {Editor} */
function raw(options) {
    const area = h('textarea', {
        id: options.id,
        spellcheck: 'false',
        placeholder: 'JSON, or text',
        oninput: options.change
    });
    const read = () => {
        try {
            return parse(area.value, { isUnique: true });
        } catch {
            return area.value;
        }
    };
    return {
        element: area,
        read,
        problems: () => [],
        set: given => {
            area.value = write(given);
            return difference(read(), given) === null;
        }
    };
}
