// @ts-check
/**
 * Markdown as elements: headings, lists, code, quotes, tables, links. HTML in it stays text; images are links. Texts
 * are those of strangers: reading one takes time in proportion to its length.
 */
import { h, link } from './dom.js';

/** What is longer is shown as plain text from there on. */
export const MOST_TEXT = 40_000;
const MOST_CELLS = 40;
const MOST_DEPTH = 3;

/** @typedef {{kind: 'text' | 'code' | 'strong' | 'soft' | 'link', text: string, href?: string}} Mark */

/** Finds marks from left to right, and looks at each place at most once for each mark. @param {string} text */
function finder(text) {
    /** @type {Map<string, number>} */
    const known = new Map();
    return (/** @type {string} */ mark, /** @type {number} */ from) => {
        let at = known.get(mark) ?? -1;
        if (at < from) {
            const found = text.indexOf(mark, from);
            at = found < 0 ? Infinity : found;
            known.set(mark, at);
        }
        return at;
    };
}

/** Where runs of backticks begin, by their length. @param {string} text */
function runs(text) {
    /** @type {Map<number, {all: number[], next: number}>} */
    const found = new Map();
    for (let at = text.indexOf('`'); at >= 0; at = text.indexOf('`', at)) {
        const begin = at;
        while (text[at] === '`') at++;
        const of = found.get(at - begin) ?? { all: [], next: 0 };
        of.all.push(begin);
        found.set(at - begin, of);
    }
    return (/** @type {number} */ length, /** @type {number} */ from) => {
        const of = found.get(length);
        while (of && of.all[of.next] < from) of.next++;
        return of?.all[of.next] ?? Infinity;
    };
}

/** The marks of a paragraph. @param {string} text @returns {Mark[]} */
export function marks(text) {
    /** @type {Mark[]} */
    const out = [];
    const next = finder(text);
    const run = runs(text);
    let last = 0;
    /** @param {number} from @param {number} to @param {Mark} mark */
    const add = (from, to, mark) => {
        if (from > last) out.push({ kind: 'text', text: text.slice(last, from) });
        out.push(mark);
        last = to;
        return to;
    };
    for (let at = 0; at < text.length;) {
        const it = text[at];
        if (it === '`') {
            let end = at;
            while (text[end] === '`') end++;
            const close = run(end - at, end);
            at = close < Infinity ? add(at, close + end - at, { kind: 'code', text: text.slice(end, close) }) : end;
        } else if (it === '*' || it === '_') {
            const isStrong = text[at + 1] === it;
            const begin = at + (isStrong ? 2 : 1);
            const close = next(isStrong ? it + it : it, begin);
            const isMark = close > begin && close < next('\n', begin) && (isStrong || it === '*');
            const kind = isStrong ? 'strong' : 'soft';
            at = isMark ? add(at, close + (isStrong ? 2 : 1), { kind, text: text.slice(begin, close) }) : begin;
        } else if (it === '[' || (it === '!' && text[at + 1] === '[')) {
            const begin = at + (it === '!' ? 2 : 1);
            const close = next(']', begin);
            const end = next(')', close);
            const isLink = text[close + 1] === '(' && close < next('\n', begin) && end - close < 2000;
            const href = isLink ? text.slice(close + 2, end).split(/\s/, 1)[0] : '';
            at = href ? add(at, end + 1, { kind: 'link', text: text.slice(begin, close) || href, href }) : begin;
        } else if (it === 'h' && (text.startsWith('http://', at) || text.startsWith('https://', at))) {
            let end = at;
            while (end < text.length && !' \t\r\n<>)]'.includes(text[end])) end++;
            const href = text.slice(at, end);
            at = add(at, end, { kind: 'link', text: href, href });
        } else at++;
    }
    if (last < text.length) out.push({ kind: 'text', text: text.slice(last) });
    return out;
}

/** @param {string} text @param {number} [depth] @returns {(Node | string)[]} */
function inline(text, depth = 0) {
    if (depth > MOST_DEPTH) return [text];
    return marks(text).map(it => {
        switch (it.kind) {
            case 'code':
                return h('code', null, it.text);
            case 'strong':
                return h('strong', null, inline(it.text, depth + 1));
            case 'soft':
                return h('em', null, inline(it.text, depth + 1));
            case 'link':
                return link(it.href ?? '', it.text);
            default:
                return it.text;
        }
    });
}

/** @param {string} line */
const cells = line =>
    line
        .trim()
        .replace(/^\||\|$/g, '')
        .split('|', MOST_CELLS)
        .map(cell => cell.trim());
/** @param {string} line */
const isRule = line => /^[\s|:-]+$/.test(line) && line.includes('-');
const ITEM = /^\s*(?:[-*+]|\d{1,9}[.)])\s/;
/** @param {string} line */
const endsParagraph = line => !line.trim() || /^(?:#{1,6}\s|>|\s*(?:```|~~~)|\s*[-*+]\s)/.test(line);

/** @param {string} text */
export function markdown(text) {
    const lines = text.slice(0, MOST_TEXT).split(/\r?\n/);
    const out = h('div.md');
    let at = 0;
    const take = (/** @type {(line: string) => boolean} */ belongs) => {
        const taken = [];
        while (at < lines.length && belongs(lines[at])) taken.push(lines[at++]);
        return taken;
    };
    while (at < lines.length) {
        const line = lines[at];
        const fence = line.match(/^\s*(```|~~~)/)?.[1];
        const heading = line.match(/^(#{1,6})\s+(.*)/);
        if (fence) {
            at++;
            out.append(h('pre', { tabindex: '0' }, take(it => !it.trim().startsWith(fence)).join('\n')));
            at++;
        } else if (heading) {
            out.append(h('p.md-h', null, h('strong', null, inline(heading[2]))));
            at++;
        } else if (ITEM.test(line)) {
            const items = take(it => ITEM.test(it)).map(it => h('li', null, inline(it.replace(ITEM, ''))));
            out.append(h(/^\s*\d/.test(line) ? 'ol' : 'ul', null, items));
        } else if (line.startsWith('>')) {
            out.append(
                h(
                    'blockquote',
                    null,
                    inline(
                        take(it => it.startsWith('>'))
                            .map(it => it.slice(1).trim())
                            .join(' ')
                    )
                )
            );
        } else if (line.includes('|') && isRule(lines[at + 1] ?? '')) {
            at += 2;
            const row = (/** @type {string} */ tag, /** @type {string} */ it) =>
                h(
                    'tr',
                    null,
                    cells(it).map(cell => h(tag, null, inline(cell)))
                );
            const rows = take(it => it.includes('|')).map(it => row('td', it));
            const table = h('table', null, h('thead', null, row('th', line)), h('tbody', null, rows));
            out.append(h('div.tablebox', { tabindex: '0' }, table));
        } else if (!line.trim()) at++;
        else {
            const words = [lines[at++], ...take(it => !endsParagraph(it))];
            out.append(
                h(
                    'p',
                    null,
                    words.flatMap((it, n) => [n ? h('br') : null, ...inline(it)])
                )
            );
        }
    }
    if (text.length > MOST_TEXT) {
        out.append(h('p.soft', null, 'The rest is long and shown as plain text.'));
        out.append(h('pre', { tabindex: '0' }, text.slice(MOST_TEXT)));
    }
    return out;
}

/** Whether text looks like Markdown. @param {string} text */
export function isMarkdown(text) {
    const lines = text
        .slice(0, 10_000)
        .split('\n')
        .map(line => line.slice(0, 200));
    return lines.some(
        (line, at) =>
            /^#{1,6}\s|```|\*\*[^*]+\*\*|\]\(https?:/.test(line) ||
            (/^\s*[-*]\s/.test(line) && /^\s*[-*]\s/.test(lines[at + 1] ?? '')) ||
            (line.includes('|') && isRule(lines[at + 1] ?? ''))
    );
}
