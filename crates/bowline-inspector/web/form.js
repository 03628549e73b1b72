// @ts-check
/**
 * Forms from schemas. A field is unset, null, or has a value: three states, and only the person
 * changes them. What was typed stays as typed; nothing is repaired.
 */
import { fill, h } from './dom.js';
import { Num, parse, write } from './json.js';

/** @typedef {{read: () => any, problems: () => string[], element: HTMLElement, set: (value: any) => void}} Editor */
/** Not there at all. */
export const UNSET = Symbol('unset');
let ids = 0;

/** A schema with its references and `allOf` resolved, one level. @param {any} schema @param {any} root @param {number} [depth] @returns {any} */
export function resolve(schema, root, depth = 0) {
    if (schema === true || schema === undefined || schema === null || depth > 20) return {};
    if (schema === false) return { not: {} };
    let it = schema;
    if (typeof it.$ref === 'string' && it.$ref.startsWith('#')) {
        let found = root;
        for (const part of it.$ref.slice(1).split('/').filter(Boolean)) found = found?.[decodeURIComponent(part).replace(/~1/g, '/').replace(/~0/g, '~')];
        const { $ref, ...rest } = it;
        it = { ...resolve(found, root, depth + 1), ...rest };
    }
    if (Array.isArray(it.allOf)) {
        const { allOf, ...rest } = it;
        it = [rest, ...allOf.map((/** @type {any} */ part) => resolve(part, root, depth + 1))].reduce((all, part) => ({
            ...part, ...all,
            ...(all.properties || part.properties ? { properties: { ...part.properties, ...all.properties } } : {}),
            required: [...new Set([...(all.required ?? []), ...(part.required ?? [])])]
        }));
    }
    return it;
}

/** @param {any} it */
const typesOf = it => (Array.isArray(it.type) ? it.type : it.type ? [it.type] : it.properties ? ['object'] : it.items ? ['array'] : []);

/** What a schema allows besides null, and whether null. @param {any} schema @param {any} root @returns {{it: any, types: string[], nullable: boolean, choices: any}} */
function shape(schema, root) {
    const it = resolve(schema, root);
    let types = typesOf(it);
    let nullable = types.includes('null') || it.nullable === true || (it.enum ?? []).includes(null);
    types = types.filter((/** @type {string} */ type) => type !== 'null');
    let choices = it.oneOf ?? it.anyOf;
    if (choices) {
        const real = choices.filter((/** @type {any} */ one) => resolve(one, root).type !== 'null');
        nullable ||= real.length < choices.length;
        choices = real;
        if (choices.length === 1) {
            const { anyOf, oneOf, ...rest } = it;
            return { ...shape({ ...resolve(choices[0], root), ...rest }, root), nullable };
        }
    } else if (types.length > 1) choices = types.map((/** @type {string} */ type) => ({ ...it, type, title: type }));
    return { it, types, nullable, choices };
}

/**
 * An editor for a schema.
 * @param {any} schema @param {any} root @param {{name: string, required?: boolean, change: () => void, complete?: (value: string) => Promise<string[]>, depth?: number}} options
 * @returns {Editor}
 */
export function editor(schema, root, options) {
    const { it, nullable } = shape(schema, root);
    const id = `f${ids++}`;
    const depth = options.depth ?? 0;
    let state = options.required ? 'value' : 'unset';
    /** @type {Editor | null} */
    let inner = null;
    const place = h('div');
    const states = h('select.state', { 'aria-label': `${options.name}: unset, null or value`, onchange: () => { state = states.value; draw(); options.change(); } },
        ['unset', ...(nullable ? ['null'] : []), 'value'].map(one => h('option', { value: one }, one)));
    const make = () => (inner ??= depth > 12 ? raw({ ...options, id }) : value(schema, root, { ...options, id, depth }));
    function draw() {
        states.value = state;
        fill(place, state === 'value' ? make().element : null);
    }
    const element = h('div.field', { 'data-field': options.name },
        h('div.row', null,
            h('label.name', { for: id }, it.title && it.title !== options.name ? `${options.name}` : options.name, options.required ? h('span.tag', null, 'required') : null, h('span.soft.small', null, kind(schema, root))),
            states),
        it.description ? h('p.soft.small', null, it.description) : null, place);
    if (it.default !== undefined) set(it.default);
    else if (it.const !== undefined && options.required) set(it.const);
    draw();
    /** @param {any} given */
    function set(given) {
        if (given === UNSET) state = 'unset';
        else if (given === null && nullable) state = 'null';
        else { state = 'value'; make().set(given); }
        draw();
    }
    return {
        element, set,
        read: () => (state === 'unset' ? UNSET : state === 'null' ? null : make().read()),
        problems: () => (state === 'value' ? make().problems() : state === 'unset' && options.required ? [`${options.name} is required`] : [])
    };
}

/** @param {any} schema @param {any} root */
function kind(schema, root) {
    const { it, types, choices, nullable } = shape(schema, root);
    const word = it.enum ? 'choice' : choices ? 'one of several' : it.format ?? (types.join(' or ') || 'any');
    return nullable ? `${word} or null` : word;
}

/** @param {any} schema @param {any} root @param {any} options @returns {Editor} */
function value(schema, root, options) {
    const { it, types, choices } = shape(schema, root);
    if (it.enum || it.const !== undefined) return choice(it.enum ?? [it.const], it.enumNames, options);
    if (choices?.every((/** @type {any} */ one) => one.const !== undefined)) return choice(choices.map((/** @type {any} */ one) => one.const), choices.map((/** @type {any} */ one) => one.title), options);
    if (choices) return several(it, choices, root, options);
    switch (types[0]) {
        case 'string': return text(it, options);
        case 'integer': case 'number': return number(types[0], options);
        case 'boolean': return choice([true, false], undefined, options);
        case 'array': return list(it, root, options);
        case 'object': return object(it, root, options);
        default: return raw(options);
    }
}

/** @param {any} it @param {any} options @returns {Editor} */
function text(it, options) {
    const suggestions = options.complete ? h('datalist', { id: `${options.id}-list` }) : null;
    const isLong = !suggestions && ((it.maxLength ?? 0) > 200 || /text|body|content|markdown|code/i.test(options.name));
    const input = h(isLong ? 'textarea' : 'input', { id: options.id, type: isLong ? null : 'text', spellcheck: 'false', list: suggestions ? `${options.id}-list` : null, autocomplete: 'off',
        oninput: async () => {
            options.change();
            if (!suggestions) return;
            const typed = input.value;
            const found = await options.complete(typed).catch(() => []);
            if (input.value === typed) fill(suggestions, found.map((/** @type {string} */ one) => h('option', { value: one })));
        } });
    if (suggestions) input.addEventListener('focus', () => input.dispatchEvent(new Event('input')), { once: true });
    const file = it.contentEncoding === 'base64' || it.format === 'byte' ? h('input', { type: 'file', 'aria-label': `${options.name}: file`, onchange: async () => {
        const bytes = new Uint8Array(await file.files[0].arrayBuffer());
        let binary = '';
        for (const byte of bytes) binary += String.fromCharCode(byte);
        input.value = btoa(binary);
        options.change();
    } }) : null;
    return { element: h('div', null, input, suggestions, file), read: () => input.value, problems: () => [], set: given => { input.value = typeof given === 'string' ? given : write(given); } };
}

/** @param {string} type @param {any} options @returns {Editor} */
function number(type, options) {
    const input = h('input', { id: options.id, type: 'text', inputmode: type === 'integer' ? 'numeric' : 'decimal', autocomplete: 'off', oninput: options.change });
    const good = () => /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(input.value.trim());
    return {
        element: input, read: () => (good() ? new Num(input.value.trim()) : input.value),
        problems: () => (good() ? [] : [`${options.name} is not a number: ${JSON.stringify(input.value)} would be sent as text`]),
        set: given => { input.value = String(given); }
    };
}

/** @param {any[]} values @param {string[] | undefined} names @param {any} options @returns {Editor} */
function choice(values, names, options) {
    const real = values.filter(one => one !== null);
    const select = h('select', { id: options.id, onchange: options.change }, real.map((one, at) => h('option', { value: String(at) }, names?.[at] ?? (typeof one === 'string' ? one : write(one)))));
    return { element: select, read: () => real[Number(select.value)], problems: () => [], set: given => { const at = real.findIndex(one => write(one) === write(given)); if (at >= 0) select.value = String(at); } };
}

/** @param {any} it @param {any[]} choices @param {any} root @param {any} options @returns {Editor} */
function several(it, choices, root, options) {
    const { anyOf, oneOf, ...rest } = it;
    const shapes = choices.map(one => (rest.properties ? resolve({ allOf: [one, rest] }, root) : resolve(one, root)));
    const editors = /** @type {Editor[]} */ ([]);
    const name = (/** @type {any} */ one, /** @type {number} */ at) => one.title ?? Object.values(one.properties ?? {}).map(/** @returns {any} */ (/** @type {any} */ p) => p?.const).find(Boolean) ?? one.description ?? typesOf(one)[0] ?? `option ${at + 1}`;
    const select = h('select', { id: options.id, onchange: () => { draw(); options.change(); } }, shapes.map((one, at) => h('option', { value: String(at) }, name(one, at))));
    const place = h('div.nested');
    const current = () => (editors[Number(select.value)] ??= value(shapes[Number(select.value)], root, { ...options, id: `f${ids++}`, depth: options.depth + 1, label: true }));
    const draw = () => { const it = current(); fill(place, it.element); for (const input of place.querySelectorAll(':scope > input, :scope > select, :scope > textarea, :scope > div > input, :scope > div > textarea')) input.setAttribute('aria-label', options.name); };
    draw();
    return { element: h('div.column', null, select, place), read: () => current().read(), problems: () => current().problems(), set: given => {
        const kindOf = Array.isArray(given) ? 'array' : given === null ? 'null' : typeof given;
        const at = shapes.findIndex(one => typesOf(one).includes(kindOf) && Object.entries(one.properties ?? {}).every(([key, p]) => /** @type {any} */ (p)?.const === undefined || write(/** @type {any} */ (p).const) === write(given?.[key])));
        select.value = String(Math.max(0, at)); draw(); current().set(given);
    } };
}

/** @param {any} it @param {any} root @param {any} options @returns {Editor} */
function list(it, root, options) {
    /** @type {Editor[]} */
    let items = [];
    const place = h('div.nested');
    const draw = () => fill(place, items.map((one, at) => h('div.row.value', null, h('div.grow', null, one.element), h('button.button.small', { type: 'button', 'aria-label': `Remove ${options.name} ${at + 1}`, onclick: () => { items.splice(at, 1); draw(); options.change(); } }, '✕'))));
    const push = (/** @type {any} */ given) => {
        const at = items.length;
        const one = editor(it.prefixItems?.[at] ?? it.items ?? {}, root, { name: `${options.name} ${at + 1}`, required: true, change: options.change, depth: options.depth + 1 });
        if (given !== UNSET) one.set(given);
        items.push(one);
    };
    return {
        element: h('div.column', null, place, h('div', null, h('button.button.small', { id: options.id, type: 'button', onclick: () => { push(UNSET); draw(); options.change(); } }, `Add to ${options.name}`))),
        read: () => items.map(one => one.read()).map(one => (one === UNSET ? null : one)), problems: () => items.flatMap(one => one.problems()),
        set: given => { items = []; for (const one of Array.isArray(given) ? given : []) push(one); draw(); }
    };
}

/** @param {any} it @param {any} root @param {any} options @returns {Editor} */
function object(it, root, options) {
    /** @type {Map<string, Editor>} */
    const fields = new Map();
    for (const [name, schema] of Object.entries(it.properties ?? {})) {
        const complete = options.completeFor?.(name);
        fields.set(name, editor(schema, root, { name, required: it.required?.includes(name), change: options.change, depth: options.depth + 1, complete }));
    }
    /** @type {{key: HTMLInputElement, one: Editor}[]} */
    let more = [];
    const open = it.additionalProperties !== false && (it.additionalProperties || !fields.size);
    const place = h('div.nested');
    const draw = () => fill(place, more.map((entry, at) => h('div.row.value', null, entry.key, h('div.grow', null, entry.one.element), h('button.button.small', { type: 'button', 'aria-label': `Remove ${entry.key.value}`, onclick: () => { more.splice(at, 1); draw(); options.change(); } }, '✕'))));
    const push = (/** @type {string} */ name, /** @type {any} */ given) => {
        const key = h('input', { type: 'text', value: name, 'aria-label': `${options.name}: key`, oninput: options.change });
        const one = editor(typeof it.additionalProperties === 'object' ? it.additionalProperties : {}, root, { name: name || 'value', required: true, change: options.change, depth: options.depth + 1 });
        if (given !== UNSET) one.set(given);
        more.push({ key, one });
    };
    const nested = h(options.flat ? 'div.column' : 'div.nested', null, [...fields.values()].map(one => one.element));
    return {
        element: h('div.column', null, nested, open ? place : null, open ? h('div', null, h('button.button.small', { type: 'button', id: fields.size ? null : options.id, onclick: () => { push('', UNSET); draw(); options.change(); } }, `Add a key to ${options.name}`)) : null),
        read: () => {
            /** @type {Record<string, any>} */
            const all = {};
            for (const [name, one] of fields) { const got = one.read(); if (got !== UNSET) Object.defineProperty(all, name, { value: got, enumerable: true, configurable: true, writable: true }); }
            for (const { key, one } of more) { const got = one.read(); if (got !== UNSET) Object.defineProperty(all, key.value, { value: got, enumerable: true, configurable: true, writable: true }); }
            return all;
        },
        problems: () => [...[...fields.values()].flatMap(one => one.problems()), ...more.flatMap(({ one }) => one.problems())],
        set: given => {
            more = [];
            for (const [name, one] of fields) one.set(given && typeof given === 'object' && Object.hasOwn(given, name) ? given[name] : UNSET);
            for (const [name, one] of Object.entries(given ?? {})) if (!fields.has(name)) push(name, one);
            draw();
        }
    };
}

/** Any JSON. @param {any} options @returns {Editor} */
function raw(options) {
    const area = h('textarea', { id: options.id, spellcheck: 'false', placeholder: 'JSON, or text', oninput: options.change });
    const read = () => { try { return parse(area.value); } catch { return area.value; } };
    return { element: area, read, problems: () => [], set: given => { area.value = typeof given === 'string' ? given : write(given); } };
}

/**
 * A whole form: fields, or the same as a draft of JSON that keeps what was typed.
 * @param {any} schema @param {{change?: () => void, completeFor?: (name: string) => ((value: string) => Promise<string[]>) | undefined, initial?: string}} [options]
 */
export function form(schema, options = {}) {
    const change = () => { sync(); options.change?.(); };
    const fields = value({ type: 'object', ...resolve(schema ?? {}, schema) }, schema, { name: 'arguments', id: `f${ids++}`, change, depth: 0, flat: true, completeFor: options.completeFor });
    const area = h('textarea', { 'aria-label': 'Arguments as JSON', rows: '10', spellcheck: 'false', oninput: () => { judge(); options.change?.(); } });
    const told = h('p.small', { role: 'status' });
    const hasFields = Object.keys(resolve(schema ?? {}, schema).properties ?? {}).length > 0 || shape(schema ?? {}, schema).choices;
    let mode = 'form';
    const place = h('div');
    const tab = (/** @type {string} */ name, /** @type {string} */ label) => h('button', { type: 'button', role: 'tab', 'aria-selected': String(mode === name), onclick: () => show(name) }, label);
    const tabs = h('div.tabs', { role: 'tablist', 'aria-label': 'How to edit' });
    const draftIsGood = () => { try { parse(area.value); return true; } catch { return false; } };
    function judge() {
        let why = '';
        try { parse(area.value); } catch (error) { why = `Not JSON yet: ${/** @type {Error} */ (error).message}. It stays as you typed it.`; }
        told.textContent = why;
    }
    function sync() {
        const problems = fields.problems();
        told.textContent = problems.length ? problems.join('; ') : '';
    }
    /** @param {string} name */
    function show(name) {
        if (name === mode) return;
        if (name === 'json' && mode === 'form') area.value = write(fields.read());
        if (name === 'form') {
            if (!draftIsGood()) { judge(); return; }
            fields.set(parse(area.value));
        }
        mode = name;
        draw();
    }
    function draw() {
        fill(tabs, tab('form', 'Form'), tab('json', 'JSON'));
        fill(place, mode === 'form' ? (hasFields ? fields.element : h('div.column', null, h('p.soft', null, 'No arguments are declared.'), fields.element)) : area);
        mode === 'form' ? sync() : judge();
    }
    if (options.initial !== undefined) {
        area.value = options.initial;
        if (draftIsGood()) fields.set(parse(options.initial)); else mode = 'json';
    }
    draw();
    return {
        element: h('div.column', null, tabs, place, told),
        /** The arguments as JSON text, exactly as typed. */
        text: () => (mode === 'json' ? area.value : write(fields.read())),
        isJson: () => mode === 'form' || draftIsGood(),
        problems: () => (mode === 'form' ? fields.problems() : [])
    };
}
