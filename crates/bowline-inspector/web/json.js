// @ts-check
/** JSON as text: numbers stay as they were written, and nothing is lost by looking at it. */
import { h } from './dom.js';

/** A number as it was written. */
export class Num {
    /** @param {string} text */
    constructor(text) {
        this.text = text;
    }
    toString() {
        return this.text;
    }
}

/** Reads JSON; numbers that a script would change become `Num`. @param {string} text */
export function parse(text) {
    const keep = (/** @type {string} */ _, /** @type {any} */ value, /** @type {any} */ context) => (typeof value === 'number' && context?.source && String(value) !== context.source ? new Num(context.source) : value);
    return JSON.parse(text, /** @type {any} */ (keep));
}

/** Writes JSON. @param {any} value @param {number} [depth] @returns {string} */
export function write(value, depth = 0) {
    if (value instanceof Num) return value.text;
    if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
    const [open, close] = Array.isArray(value) ? '[]' : '{}';
    const parts = Array.isArray(value)
        ? value.map(it => write(it, depth + 1))
        : Object.entries(value).map(([key, it]) => `${JSON.stringify(key)}: ${write(it, depth + 1)}`);
    if (!parts.length) return open + close;
    const flat = `${open}${parts.join(', ')}${close}`;
    if (flat.length < 60 && !flat.includes('\n')) return flat;
    const pad = '  '.repeat(depth + 1);
    return `${open}\n${pad}${parts.join(`,\n${pad}`)}\n${'  '.repeat(depth)}${close}`;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}[\],:]/g;

/** The text of a member of an object, exactly. @param {string} text @param {string} name */
export function member(text, name) {
    TOKEN.lastIndex = 0;
    let depth = 0, key = '', start = -1, expectsKey = false, token;
    while ((token = TOKEN.exec(text))) {
        const it = token[0];
        if (depth === 1 && start < 0 && !expectsKey && it === ':' ) start = key === name ? TOKEN.lastIndex : -2;
        else if (depth === 1 && expectsKey && it[0] === '"') { key = JSON.parse(it); expectsKey = false; }
        if (it === '{' || it === '[') { depth++; if (depth === 1) expectsKey = true; }
        const ends = depth === 1 && (it === ',' || it === '}');
        if (ends) {
            if (start >= 0) return text.slice(start, token.index).trim();
            start = -1; expectsKey = true;
        }
        if (it === '}' || it === ']') depth--;
    }
    return null;
}

/** JSON in colours and indented, from its exact text. @param {string} text @param {boolean} [exact] */
export function pretty(text, exact = false) {
    const box = h('pre', { tabindex: '0', 'aria-label': 'JSON' });
    if (exact || text.length > 400_000) {
        box.textContent = text.length > 2_000_000 ? `${text.slice(0, 2_000_000)}…` : text;
        return box;
    }
    let indent = 0, last = 0, token, before = '';
    const parts = /** @type {Node[]} */ ([]);
    let plain = '';
    const flush = () => { if (plain) parts.push(document.createTextNode(plain)); plain = ''; };
    const line = () => { plain += `\n${'  '.repeat(indent)}`; };
    TOKEN.lastIndex = 0;
    while ((token = TOKEN.exec(text))) {
        const it = token[0];
        last = TOKEN.lastIndex;
        const rest = text.slice(last).match(/^\s*(.)/)?.[1];
        if (it === '{' || it === '[') {
            plain += it;
            if (rest !== '}' && rest !== ']') { indent++; line(); }
        } else if (it === '}' || it === ']') {
            if (before !== '{' && before !== '[') { indent--; line(); }
            plain += it;
        } else if (it === ',') { plain += ','; line(); }
        else if (it === ':') plain += ': ';
        else {
            flush();
            const kind = it[0] === '"' ? (rest === ':' ? 'k' : 's') : /[tfn]/.test(it[0]) ? 'w' : 'n';
            parts.push(h(`span.j-${kind}`, null, it));
        }
        before = it;
    }
    flush();
    if (!parts.length || text.slice(last).trim()) box.textContent = text;
    else box.append(...parts);
    return box;
}
