// @ts-check
/** JSON as text: numbers stay as they were written, and nothing is lost by looking at it. */
import { h } from './dom.js';

/** Deeper texts are shown, but not read. */
const MOST_DEPTH = 500;
/** The most parts of a text that get colours; the rest is plain. */
const MOST_COLOURS = 20_000;

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

/** Why a text is not JSON, and where. */
export class NotJson extends Error {
    /** @param {string} what @param {string} text @param {number} at */
    constructor(what, text, at) {
        const lines = text.slice(0, at).split('\n');
        super(`${what} at line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`);
    }
}

/** Where the string that begins at `at` ends; -1 if it does not. @param {string} text @param {number} at */
export function stringEnd(text, at) {
    for (let end = at + 1; ; end++) {
        end = text.indexOf('"', end);
        if (end < 0) return -1;
        let slashes = 0;
        while (text.charCodeAt(end - 1 - slashes) === 92) slashes++;
        if (slashes % 2 === 0) return end + 1;
    }
}

/**
 * Reads JSON. A number that a script would change becomes a `Num`, in every browser.
 * @param {string} text @param {{isUnique?: boolean}} [options] `isUnique`: a key that is there twice is an error
 * @returns {any}
 */
export function parse(text, { isUnique = false } = {}) {
    let at = 0;
    const space = /[ \t\r\n]*/y;
    const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
    const skip = () => {
        space.lastIndex = at;
        space.exec(text);
        at = space.lastIndex;
        return text[at];
    };
    const fail = (/** @type {string} */ what) => new NotJson(what, text, at);
    const found = () => (at >= text.length ? 'the end' : JSON.stringify(text[at]));
    const string = () => {
        const end = stringEnd(text, at);
        if (end < 0) throw fail('a string without an end');
        try {
            const value = JSON.parse(text.slice(at, end));
            at = end;
            return value;
        } catch {
            throw fail('an invalid string');
        }
    };
    /** @param {number} depth @returns {unknown} */
    const value = depth => {
        if (depth > MOST_DEPTH) throw fail(`more than ${MOST_DEPTH} levels`);
        const first = skip();
        if (first === '"') return string();
        if (first === '{') return object(depth);
        if (first === '[') return array(depth);
        for (const [word, it] of [
            ['true', true],
            ['false', false],
            ['null', null]
        ]) {
            if (text.startsWith(String(word), at)) {
                at += String(word).length;
                return it;
            }
        }
        number.lastIndex = at;
        const written = number.exec(text)?.[0];
        if (!written) throw fail(`expected a value, found ${found()}`);
        at = number.lastIndex;
        return String(Number(written)) === written ? Number(written) : new Num(written);
    };
    /** @param {number} depth @returns {unknown[]} */
    const array = depth => {
        /** @type {unknown[]} */
        const all = [];
        at++;
        if (skip() === ']') {
            at++;
            return all;
        }
        for (;;) {
            all.push(value(depth + 1));
            const next = skip();
            if (next !== ',' && next !== ']') throw fail(`expected , or ], found ${found()}`);
            at++;
            if (next === ']') return all;
        }
    };
    /** @param {number} depth */
    const object = depth => {
        /** @type {Record<string, unknown>} */
        const all = {};
        at++;
        if (skip() === '}') {
            at++;
            return all;
        }
        for (;;) {
            if (skip() !== '"') throw fail(`expected a key in quotes, found ${found()}`);
            const key = string();
            if (isUnique && Object.hasOwn(all, key)) throw fail(`the key ${JSON.stringify(key)} for the second time`);
            if (skip() !== ':') throw fail(`expected :, found ${found()}`);
            at++;
            put(all, key, value(depth + 1));
            const next = skip();
            if (next !== ',' && next !== '}') throw fail(`expected , or }, found ${found()}`);
            at++;
            if (next === '}') return all;
        }
    };
    const whole = value(0);
    if (skip() !== undefined) throw fail(`expected the end, found ${found()}`);
    return whole;
}

/** Why a text is not JSON; empty if it is. @param {string} text */
export function problemOf(text) {
    try {
        parse(text);
        return '';
    } catch (error) {
        return `Not JSON yet: ${/** @type {Error} */ (error).message}`;
    }
}

/** Sets a member, whatever its name. @param {object} object @param {string} name @param {unknown} value */
export function put(object, name, value) {
    if (name !== '__proto__') /** @type {Record<string, unknown>} */ (object)[name] = value;
    else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

/** @param {unknown} it @returns {it is Record<string, any>} */
export const isObject = it => typeof it === 'object' && it !== null && !Array.isArray(it) && !(it instanceof Num);

/**
 * Where two values first differ, as a path; null if they are the same.
 * @param {unknown} one @param {unknown} other @param {string} [path] @returns {string | null}
 */
export function difference(one, other, path = '') {
    if (Array.isArray(one) && Array.isArray(other)) {
        if (one.length !== other.length) return path || 'the list';
        for (const [at, it] of one.entries()) {
            const found = difference(it, other[at], `${path}[${at}]`);
            if (found !== null) return found;
        }
        return null;
    }
    if (isObject(one) && isObject(other)) {
        for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
            const here = path ? `${path}.${key}` : key;
            if (!Object.hasOwn(one, key) || !Object.hasOwn(other, key)) return here;
            const found = difference(one[key], other[key], here);
            if (found !== null) return found;
        }
        return null;
    }
    const isPlain = [one, other].every(it => it instanceof Num || typeof it !== 'object' || it === null);
    return isPlain && typeof one !== 'symbol' && typeof other !== 'symbol' && write(one) === write(other)
        ? null
        : path || 'the whole';
}

/** Writes JSON. @param {unknown} value @param {number} [depth] @returns {string} */
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

/** The text of a member of an object, exactly. @param {string} text @param {string} name @returns {string | null} */
export function member(text, name) {
    let depth = 0;
    let key = '';
    let start = -1;
    let isKey = false;
    for (let at = 0; at < text.length; at++) {
        const it = text[at];
        if (it === '"') {
            const end = stringEnd(text, at);
            if (end < 0) return null;
            if (depth === 1 && isKey) {
                key = text.slice(at, end);
                isKey = false;
            }
            at = end - 1;
        } else if (it === '{' || it === '[') {
            depth++;
            if (depth === 1) {
                if (it === '[') return null;
                isKey = true;
            }
        } else if (depth === 1 && it === ':') {
            if (start < 0 && JSON.parse(key) === name) start = at + 1;
        } else if (depth === 1 && (it === ',' || it === '}')) {
            if (start >= 0) return text.slice(start, at).trim();
            isKey = true;
            if (it === '}') return null;
        } else if (it === '}' || it === ']') depth--;
    }
    return null;
}

/** A member that is a string. @param {string} text @param {string} name @returns {string | null} */
export function textMember(text, name) {
    const found = member(text, name);
    return found?.startsWith('"') ? JSON.parse(found) : null;
}

const TOKEN = /-?\d[\d.eE+-]*|true|false|null|[{}[\],:]/y;

/** The next part of a text: where it begins and ends. @param {string} text @param {number} from */
function token(text, from) {
    let at = from;
    while (at < text.length && ' \t\r\n'.includes(text[at])) at++;
    if (at >= text.length) return null;
    if (text[at] === '"') {
        const end = stringEnd(text, at);
        return end < 0 ? null : { at, end };
    }
    TOKEN.lastIndex = at;
    return TOKEN.test(text) ? { at, end: TOKEN.lastIndex } : null;
}

/** JSON in colours and indented, from its exact text. @param {string} text @param {boolean} [exact] */
export function pretty(text, exact = false) {
    const box = h('pre', { tabindex: '0', 'aria-label': 'JSON' });
    if (exact || text.length > 400_000) {
        box.textContent = text.length > 2_000_000 ? `${text.slice(0, 2_000_000)}…` : text;
        return box;
    }
    let indent = 0;
    let plain = '';
    let before = '';
    const parts = /** @type {Node[]} */ ([]);
    const flush = () => {
        if (plain) parts.push(document.createTextNode(plain));
        plain = '';
    };
    const line = () => {
        plain += `\n${'  '.repeat(Math.min(indent, 100))}`;
    };
    let last = 0;
    for (let next = token(text, 0); next;) {
        const it = text.slice(next.at, next.end);
        last = next.end;
        next = token(text, last);
        const after = next ? text[next.at] : '';
        if (it === '{' || it === '[') {
            plain += it;
            indent++;
            if (after !== '}' && after !== ']') line();
        } else if (it === '}' || it === ']') {
            indent--;
            if (before !== '{' && before !== '[') line();
            plain += it;
        } else if (it === ',') {
            plain += ',';
            line();
        } else if (it === ':') plain += ': ';
        else if (parts.length > MOST_COLOURS) plain += it;
        else {
            flush();
            const kind = it[0] === '"' ? (after === ':' ? 'k' : 's') : /[tfn]/.test(it[0]) ? 'w' : 'n';
            parts.push(h(`span.j-${kind}`, null, it));
        }
        before = it;
    }
    flush();
    if (!parts.length || text.slice(last).trim()) box.textContent = text;
    else box.append(...parts);
    return box;
}
