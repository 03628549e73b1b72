// @ts-check
/** Markdown as elements: headings, lists, code, quotes, tables, links. HTML in it stays text; images are links. */
import { h, link } from './dom.js';

/** @param {string} text @returns {any[]} */
function inline(text) {
    const out = /** @type {any[]} */ ([]);
    const rule = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*([^*\n]+)\*\*|__([^_\n]+)__|\*([^*\n]+)\*|!?\[([^\]\n]*)\]\(([^)\s]+)[^)]*\)|(https?:\/\/[^\s<>)\]]+)/g;
    let last = 0, found;
    while ((found = rule.exec(text))) {
        out.push(text.slice(last, found.index));
        last = rule.lastIndex;
        const [, , code, strong, strong2, soft, name, href, bare] = found;
        if (code !== undefined) out.push(h('code', null, code));
        else if (strong ?? strong2) out.push(h('strong', null, inline(strong ?? strong2)));
        else if (soft) out.push(h('em', null, inline(soft)));
        else if (href) out.push(link(href, name || href));
        else out.push(link(bare));
    }
    out.push(text.slice(last));
    return out;
}

/** @param {string} line */
const cells = line => line.trim().replace(/^\||\|$/g, '').split('|').map(cell => cell.trim());

/** @param {string} text */
export function markdown(text) {
    const lines = text.slice(0, 200_000).split(/\r?\n/);
    const out = h('div.md');
    for (let at = 0; at < lines.length; ) {
        const line = lines[at];
        const fence = line.match(/^\s*(```+|~~~+)/)?.[1];
        const heading = line.match(/^(#{1,6})\s+(.*)/);
        if (fence) {
            const code = [];
            for (at++; at < lines.length && !lines[at].trim().startsWith(fence); at++) code.push(lines[at]);
            at++;
            out.append(h('pre', { tabindex: '0' }, code.join('\n')));
        } else if (heading) {
            out.append(h('p.md-h', null, h('strong', null, inline(heading[2]))));
            at++;
        } else if (/^\s*([-*+]|\d+[.)])\s/.test(line)) {
            const list = h(/^\s*\d/.test(line) ? 'ol' : 'ul');
            for (; at < lines.length && /^\s*([-*+]|\d+[.)])\s/.test(lines[at]); at++) list.append(h('li', null, inline(lines[at].replace(/^\s*([-*+]|\d+[.)])\s/, ''))));
            out.append(list);
        } else if (line.startsWith('>')) {
            const quoted = [];
            for (; at < lines.length && lines[at].startsWith('>'); at++) quoted.push(lines[at].slice(1).trim());
            out.append(h('blockquote', null, inline(quoted.join(' '))));
        } else if (line.includes('|') && /^[\s|:-]+-[\s|:-]*$/.test(lines[at + 1] ?? '')) {
            const head = cells(line);
            const rows = [];
            for (at += 2; at < lines.length && lines[at].includes('|'); at++) rows.push(cells(lines[at]));
            out.append(h('div.tablebox', { tabindex: '0' }, h('table', null, h('thead', null, h('tr', null, head.map(it => h('th', null, inline(it))))), h('tbody', null, rows.map(row => h('tr', null, row.map(it => h('td', null, inline(it)))))))));
        } else if (!line.trim()) at++;
        else {
            const words = [];
            for (; at < lines.length && lines[at].trim() && !/^(#{1,6}\s|>|\s*(```|~~~)|\s*[-*+]\s)/.test(lines[at]); at++) words.push(lines[at]);
            if (!words.length) words.push(lines[at++]);
            out.append(h('p', null, words.flatMap((it, n) => [n ? h('br') : null, ...inline(it)])));
        }
    }
    return out;
}

/** Whether text looks like Markdown. @param {string} text */
export const isMarkdown = text => /^#{1,6}\s|^\s*[-*]\s.+\n\s*[-*]\s|```|\*\*[^*\n]+\*\*|\[[^\]\n]+\]\(https?:|^\|.+\|\s*\n\|[\s:|-]+\|/m.test(text);
