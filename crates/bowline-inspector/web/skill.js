// @ts-check
/** A skill: what it is, and its files, read and verified. */
import { fill, h, many, textOf } from './dom.js';
import { pretty, write } from './json.js';
import { act, said } from './program.js';
import { resource } from './content.js';

/** @typedef {import('./store.js').Connection} Connection */

/** The name of a skill. @param {any} item @returns {string} */
export const skillName = item => textOf(item.frontmatter?.name ?? item.uri);

/** A file with its type, which the digest does not cover. @param {any} it */
const typed = it =>
    resource({ ...it, mimeType: it.mimeType ?? (/\.md$/i.test(it.uri) ? 'text/markdown' : 'text/plain') });

/** @param {Connection} connection @param {any} item */
export function skillDetail(connection, item) {
    const shown = h('div.column', { 'aria-live': 'polite' });
    const read = async (/** @type {string | undefined} */ file) => {
        fill(shown, h('p.soft', null, 'Reading and verifying…'));
        try {
            const found = await act(
                'skill',
                { connection: connection.number, ...(file ? { file } : {}) },
                { entry: write(item) }
            );
            fill(
                shown,
                h('p', null, h('span.tag.good', null, 'verified'), ' size and digest are those that were listed'),
                found.contents.map(typed)
            );
        } catch (error) {
            fill(
                shown,
                h(
                    'div.card.bad',
                    { role: 'alert' },
                    h('b', null, 'Not what was listed, so it is not shown.'),
                    h('p', null, said(error))
                )
            );
        }
    };
    const files = Array.isArray(item.resources) ? item.resources : [];
    const row = (/** @type {any} */ it) =>
        h(
            'tr',
            null,
            h(
                'td',
                null,
                h(
                    'button.button.small',
                    { type: 'button', 'aria-label': `Read ${it.uri}`, onclick: () => read(it.uri) },
                    'Read'
                )
            ),
            h('td.mono', null, it.uri),
            h('td.right', null, it.size === undefined ? '' : many(it.size, 'byte')),
            h('td.mono.small', null, textOf(it.digest).slice(0, 24))
        );
    return h(
        'div.column',
        null,
        h(
            'div.column',
            null,
            h('h1', null, skillName(item)),
            h('p.mono.soft', null, item.uri),
            h('p', null, item.frontmatter?.description)
        ),
        h(
            'div',
            null,
            h('button.button.main', { type: 'button', onclick: () => read(undefined) }, 'Read the instructions')
        ),
        files.length
            ? h('div.tablebox', { tabindex: '0' }, h('table', null, h('tbody', null, files.map(row))))
            : h(
                  'p.soft',
                  null,
                  item.resources === 'dynamic' ? 'Its files are not listed: they change.' : 'It lists no files.'
              ),
        shown,
        h('details.card', null, h('summary', null, 'Whole definition'), pretty(write(item)))
    );
}
