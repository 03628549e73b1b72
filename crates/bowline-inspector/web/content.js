// @ts-check
/** Results as what they are. */
import { ask } from './ask.js';
import { download, fill, h, link, tabs, textOf } from './dom.js';
import { Num, parse, pretty, write } from './json.js';
import { isMarkdown, markdown } from './markdown.js';
import { said } from './program.js';

/**
 * An image or a sound, from data; nothing is fetched. Nothing if the data are not base64.
 * @param {string} kind @param {string} media @param {unknown} data @param {string} label
 */
function player(kind, media, data, label) {
    if (typeof data !== 'string' || !bytesOf(data)) return null;
    const clean = /^[\w.+-]+\/[\w.+-]+$/.test(media) ? media : 'application/octet-stream';
    const src = `data:${clean};base64,${plain(data).replace(/\s/g, '')}`;
    return kind === 'image'
        ? h('img.media', { src, alt: label })
        : h('audio', { controls: true, src, 'aria-label': label });
}

/** @param {any} block @param {number} [connection] where resources that it links to can be read */
export function block(block, connection) {
    const media = textOf(block.mimeType);
    switch (block.type) {
        case 'text':
            return text(textOf(block.text));
        case 'image':
        case 'audio':
            return player(block.type, media, block.data, `${block.type} in the result`) ?? pretty(write(block));
        case 'resource_link':
            return h(
                'div.card',
                null,
                h('b', null, block.title ?? block.name),
                ' ',
                h('span.tag', null, media || 'resource'),
                h('p.soft.small', null, block.description),
                h('div.mono.small', null, link(textOf(block.uri))),
                connection === undefined ? null : reader(textOf(block.uri), connection)
            );
        case 'resource':
            return resource(block.resource ?? {});
        default:
            return pretty(write(block));
    }
}

/** Reads what a link leads to, in place. @param {string} uri @param {number} connection */
function reader(uri, connection) {
    const place = h('div.column', { 'aria-live': 'polite' });
    const read = async () => {
        button.disabled = true;
        try {
            fill(place, result(await ask(connection, 'resources/read', { uri }), 'resources/read', connection));
        } catch (error) {
            fill(place, h('p', { role: 'alert' }, said(error)));
        }
        button.disabled = false;
    };
    const button = h('button.button.small', { type: 'button', onclick: read }, 'Read');
    return h('div.column', null, h('div', null, button), place);
}

/** The longest text that is laid out at once. */
const MOST_TEXT = 500_000;

/** @param {string} said @returns {HTMLElement} */
function text(said) {
    if (said.length > MOST_TEXT) {
        const rest = h(
            'button.button.small',
            { type: 'button', onclick: () => download('text.txt', said) },
            `Save all ${said.length.toLocaleString('en')} characters`
        );
        return h(
            'div.column',
            null,
            h('pre', { tabindex: '0', 'aria-label': 'text' }, said.slice(0, MOST_TEXT)),
            h('div', null, rest)
        );
    }
    if (!isMarkdown(said)) return h('pre', { tabindex: '0', 'aria-label': 'text' }, said);
    const place = h('div', null, markdown(said));
    const button = h(
        'button.button.small',
        {
            type: 'button',
            onclick: () => {
                const isPlain = button.textContent === 'Markdown';
                fill(place, isPlain ? markdown(said) : h('pre', { tabindex: '0' }, said));
                button.textContent = isPlain ? 'Plain text' : 'Markdown';
            }
        },
        'Plain text'
    );
    return h('div.column', null, place, h('div', null, button));
}

/** @param {any} it */
export function resource(it) {
    const media = textOf(it.mimeType);
    const head = h('div.row', null, h('b.mono', null, it.uri), h('span.tag', null, media || 'unknown type'));
    const name = textOf(it.uri).split('/').pop() || 'resource';
    if (typeof it.blob === 'string') {
        const [kind] = media.split('/');
        const shown = kind === 'image' || kind === 'audio' ? player(kind, media, it.blob, name) : null;
        if (shown) return h('div.column', null, head, shown);
        const bytes = bytesOf(it.blob);
        if (!bytes)
            return h('div.column', null, head, h('p.soft', null, 'a blob that is not base64'), pretty(write(it)));
        const save = h('button.button.small', { type: 'button', onclick: () => download(name, bytes) }, 'Save');
        return h(
            'div.column',
            null,
            head,
            h('p.soft', null, `${bytes.length.toLocaleString('en')} bytes`),
            h('div', null, save)
        );
    }
    const body = textOf(it.text);
    const shown = /json/.test(media)
        ? pretty(body)
        : /markdown/.test(media)
          ? markdown(body)
          : h('pre', { tabindex: '0', 'aria-label': 'text' }, body);
    return h(
        'div.column',
        null,
        head,
        shown,
        h('div', null, h('button.button.small', { type: 'button', onclick: () => download(name, body) }, 'Save'))
    );
}

/** Base64 in its usual letters. @param {string} text */
const plain = text => text.replace(/-/g, '+').replace(/_/g, '/');

/** The bytes of base64, if it is. @param {string} text */
export function bytesOf(text) {
    try {
        return Uint8Array.from(atob(plain(text)), letter => letter.charCodeAt(0));
    } catch {
        return null;
    }
}

/** Structured content: a table where it is one. @param {any} value */
export function structured(value) {
    const rows = Array.isArray(value)
        ? value
        : Object.values(value ?? {}).length === 1 && Array.isArray(Object.values(value)[0])
          ? Object.values(value)[0]
          : null;
    const isRow = (/** @type {any} */ it) => it && typeof it === 'object' && !Array.isArray(it) && !(it instanceof Num);
    if (rows?.length && rows.every(isRow)) {
        const names = [...new Set(rows.slice(0, 200).flatMap((/** @type {any} */ row) => Object.keys(row)))].slice(
            0,
            30
        );
        return h(
            'div.tablebox',
            { tabindex: '0' },
            h(
                'table',
                null,
                h(
                    'thead',
                    null,
                    h(
                        'tr',
                        null,
                        names.map(it => h('th', null, it))
                    )
                ),
                h(
                    'tbody',
                    null,
                    rows.slice(0, 500).map((/** @type {any} */ row) =>
                        h(
                            'tr',
                            null,
                            names.map(it => h('td', null, cell(row[it])))
                        )
                    )
                )
            )
        );
    }
    if (isRow(value) && Object.values(value).every(it => !isRow(it) && !Array.isArray(it)))
        return h(
            'div.tablebox',
            { tabindex: '0' },
            h(
                'table',
                null,
                h(
                    'tbody',
                    null,
                    Object.entries(value).map(([key, it]) =>
                        h('tr', null, h('th', { scope: 'row' }, key), h('td', null, cell(it)))
                    )
                )
            )
        );
    return pretty(write(value));
}

/** @param {any} it */
const cell = it => (it === undefined ? '' : typeof it === 'string' ? it : write(it));

/** @param {any} it @param {string} method @param {number} [connection] */
function partsOf(it, method, connection) {
    const parts = [];
    if (method === 'tools/call') {
        if (it.isError) parts.push(h('div', null, h('span.tag.bad', null, 'the tool reports an error')));
        parts.push(...(it.content ?? []).map((/** @type {any} */ one) => block(one, connection)));
        if (it.structuredContent !== undefined)
            parts.push(h('h2', null, 'Structured content'), structured(it.structuredContent));
    } else if (method === 'resources/read') parts.push(...(it.contents ?? []).map(resource));
    else if (method === 'prompts/get') {
        if (it.description) parts.push(h('p.soft', null, it.description));
        parts.push(
            ...(it.messages ?? []).map((/** @type {any} */ message) =>
                h('div.card', null, h('span.tag.accent', null, message.role), block(message.content ?? {}, connection))
            )
        );
    }
    return parts;
}

/**
 * A whole result, beside its exact text. @param {string} raw @param {string} method
 * @param {number} [connection] where resources that it links to can be read
 */
export function result(raw, method, connection) {
    /** @type {HTMLElement[]} */
    let parts = [];
    try {
        parts = partsOf(parse(raw), method, connection);
    } catch {
        // Not JSON, or not what a result of this method is: shown as it came.
    }
    if (!parts.length) return h('div.column', null, pretty(raw));
    const shown = h('div.column', null, parts);
    const place = h('div', null, shown);
    const bar = tabs(
        'How to see the result',
        ['Result', 'JSON', 'Exact'].map(one => [one, one]),
        name => show(name)
    );
    const show = (/** @type {string} */ name) => {
        bar.choose(name);
        fill(place, name === 'Result' ? shown : pretty(raw, name === 'Exact'));
    };
    show('Result');
    return h('div.column', null, bar.element, place);
}
