// @ts-check
/** Lists of what a server has, and one thing of them in full. */
import { fill, h, link, many, textOf, virtual } from './dom.js';
import { pretty, write } from './json.js';
import { markdown } from './markdown.js';
import { act, attempt, said } from './program.js';
import { listen } from './store.js';
import { callPanel, subjectOf } from './call.js';
import { leave, showApp, uriOf } from './app.js';
import { skillDetail, skillName } from './skill.js';
import { expand, variables } from './uri.js';

/** @typedef {import('./store.js').Connection} Connection @typedef {import('./store.js').Call} Call */
/** @typedef {import('./form.js').Draft} Draft */
/**
 * A kind of things: those of a list of its own, or some of those `from` another.
 * @typedef {{name: (item: any) => string, word: string, from?: string, isOne?: (item: any) => boolean,
 *   detail: (connection: Connection, item: any, initial?: Draft) => HTMLElement}} Kind
 */
/** @type {Record<string, Kind>} */
export const KINDS = {
    tools: { word: 'tool', name: it => it.name, detail: tool },
    resources: { word: 'resource', name: it => it.uri, detail: resource },
    templates: { word: 'template', name: it => it.uriTemplate, detail: template },
    prompts: { word: 'prompt', name: it => it.name, detail: prompt },
    skills: { word: 'skill', name: skillName, detail: skillDetail },
    apps: { word: 'app', name: it => it.name, detail: tool, from: 'tools', isOne: it => Boolean(uriOf(it)) }
};

/**
 * The things of a kind; nothing where the server has no such list. @param {Connection} connection @param {string} list
 */
export function itemsOf(connection, list) {
    const { from, isOne } = KINDS[list];
    const items = connection.lists[from ?? list]?.items;
    if (!items || !isOne) return items;
    const some = items.filter(isOne);
    return some.length ? some : undefined;
}

/**
 * @param {HTMLElement} main @param {Connection} connection @param {string} list @param {string | null} selected
 * @param {Draft | undefined} initial
 */
export function catalog(main, connection, list, selected, initial) {
    const kind = KINDS[list];
    main.className = 'split';
    /** @type {any[]} */
    let found = [];
    /** @type {{item: any, text: string}[]} */
    let all = [];
    const search = h('input', {
        type: 'search',
        placeholder: `Search ${list}`,
        'aria-label': `Search ${list}`,
        oninput: () => filter()
    });
    const box = h('div.scroll', { role: 'list', tabindex: '0', 'aria-label': list });
    const empty = h('p.empty');
    const count = h('p.small.soft', { role: 'status' });
    const detail = h('section.detail');
    const rows = virtual(
        box,
        54,
        index => {
            const item = found[index];
            const name = kind.name(item);
            return h(
                'div',
                { role: 'listitem' },
                h(
                    'button.item',
                    {
                        type: 'button',
                        'aria-current': String(name === selected),
                        onclick: () => {
                            location.hash = `#/${connection.number}/${list}/${encodeURIComponent(name)}`;
                        }
                    },
                    h('b.cut', null, item.title ?? item.annotations?.title ?? item.name ?? name),
                    h(
                        'small.cut',
                        null,
                        textOf(item.description ?? item.frontmatter?.description ?? name).slice(0, 300)
                    )
                )
            );
        },
        index => `${kind.name(found[index])} ${kind.name(found[index]) === selected} ${generation}`
    );
    let generation = 0;
    function filter() {
        const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
        found = all
            .filter(it => words.every(/** @param {string} word */ word => it.text.includes(word)))
            .map(it => it.item);
        count.textContent = words.length ? `${found.length} of ${all.length}` : many(all.length, kind.word);
        rows.resize(found.length);
        rows.now();
    }
    /** @type {any} */
    let seen = null;
    function refresh() {
        const known = connection.lists[kind.from ?? list];
        if (known === seen && shown) return;
        seen = known;
        generation++;
        all = (itemsOf(connection, list) ?? []).map((/** @type {any} */ item) => ({
            item,
            text: [kind.name(item), item.name, item.title, item.description].map(textOf).join(' ').toLowerCase()
        }));
        empty.textContent =
            known?.problem ??
            (known && !all.length
                ? `This server has no ${list}.`
                : known
                  ? ''
                  : connection.info?.capabilities?.[list === 'templates' ? 'resources' : list]
                    ? 'Loading…'
                    : `This server does not offer ${list}.`);
        empty.hidden = !empty.textContent;
        filter();
        show();
    }
    const refetch = attempt(() => act('refresh', { connection: connection.number, list: kind.from ?? list }));
    /** Whatever a server sends can be looked at. @param {any} item */
    const detailOf = item => {
        try {
            return kind.detail(connection, item, initial);
        } catch (error) {
            const what = h('p', { role: 'alert' }, `This is not a ${kind.word} that can be shown: ${said(error)}`);
            return h('div.column', null, h('h1', null, selected), what, pretty(write(item)));
        }
    };
    let shown = '';
    function show() {
        const item = all.find(it => kind.name(it.item) === selected)?.item;
        const state = item ? JSON.stringify(item) : selected === null ? 'none' : 'gone';
        if (state === shown) return;
        shown = state;
        if (item) fill(detail, detailOf(item));
        else
            fill(
                detail,
                h(
                    'p.empty',
                    null,
                    selected === null || !all.length
                        ? `Choose a ${kind.word} on the left.`
                        : `There is no ${kind.word} ${selected} any more.`
                )
            );
    }
    fill(
        main,
        h(
            'section.list',
            null,
            h(
                'div.search.column',
                null,
                search,
                h(
                    'div.row',
                    null,
                    h('span.grow', null, count),
                    h('button.button.small', { type: 'button', onclick: refetch }, 'Refresh')
                )
            ),
            empty,
            box
        ),
        detail
    );
    refresh();
    const stop = listen(kinds => {
        if (!detail.isConnected) return stop();
        if (kinds.has('list')) refresh();
    });
}

/** @param {any} item @param {string} name @param {any[]} tags */
const heading = (item, name, tags = []) =>
    h(
        'div.column',
        null,
        h('div.row', null, h('h1', null, item.title ?? item.annotations?.title ?? name), tags),
        item.title || item.annotations?.title ? h('p.mono.soft', null, name) : null,
        item.description ? markdown(textOf(item.description)) : null
    );
/** @param {string} label @param {any} value */
const folded = (label, value) =>
    value === undefined ? null : h('details.card', null, h('summary', null, label), pretty(write(value)));

/** @param {Connection} connection @param {any} ref @param {any} [context] */
const completer = (connection, ref, context) => (/** @type {string} */ name) =>
    connection.info?.capabilities?.completions
        ? async (/** @type {string} */ value) => {
              const args = context?.() ?? {};
              const params = {
                  ref,
                  argument: { name, value },
                  ...(Object.keys(args).length ? { context: { arguments: args } } : {})
              };
              return (await act('complete', { connection: connection.number, params })).completion?.values ?? [];
          }
        : undefined;

/** @param {Connection} connection @param {any} item @param {Draft} [initial] */
function tool(connection, item, initial) {
    const hints = item.annotations ?? {};
    const tags = [
        hints.readOnlyHint ? h('span.tag.good', null, 'reads only') : null,
        hints.destructiveHint ? h('span.tag.bad', null, 'destructive') : null,
        hints.idempotentHint ? h('span.tag', null, 'idempotent') : null,
        hints.openWorldHint ? h('span.tag', null, 'open world') : null,
        uriOf(item) ? h('span.tag.accent', null, 'app') : null
    ];
    // In 2025-11-25 the client says whether a call becomes a task; in the modern era the server does.
    const canBeTask = ['optional', 'required'].includes(item.execution?.taskSupport);
    const asTask = h('input', { type: 'checkbox', checked: item.execution?.taskSupport === 'required' });
    const task = () => (canBeTask && asTask.checked ? ',"task":{}' : '');
    const panel = callPanel({
        connection,
        subject: item.name,
        key: `tools ${item.name}`,
        method: 'tools/call',
        schema: item.inputSchema,
        label: 'Call',
        initial,
        params: args => `{"name":${JSON.stringify(item.name)},"arguments":${args}${task()}}`,
        ...(uriOf(item) ? { before: leave, beside: (/** @type {Call} */ call) => showApp(connection, item, call) } : {})
    });
    return h(
        'div.column',
        null,
        heading(item, item.name, tags),
        canBeTask ? h('label.row.small', null, asTask, 'as a task') : null,
        panel.element,
        folded('Input schema', item.inputSchema),
        folded('Output schema', item.outputSchema),
        folded('Whole definition', item)
    );
}

/** @param {Connection} connection @param {any} item @param {Draft} [initial] */
function prompt(connection, item, initial) {
    const schema = {
        type: 'object',
        additionalProperties: false,
        required: (item.arguments ?? [])
            .filter((/** @type {any} */ it) => it.required)
            .map((/** @type {any} */ it) => it.name),
        properties: Object.fromEntries(
            (item.arguments ?? []).map((/** @type {any} */ it) => [
                it.name,
                { type: 'string', description: it.description }
            ])
        )
    };
    const panel = callPanel({
        connection,
        subject: item.name,
        key: `prompts ${item.name}`,
        method: 'prompts/get',
        schema,
        label: 'Get',
        initial,
        params: args => `{"name":${JSON.stringify(item.name)},"arguments":${args}}`,
        completeFor: completer(connection, { type: 'ref/prompt', name: item.name }, () => filled(panel?.text()))
    });
    return h('div.column', null, heading(item, item.name), panel.element, folded('Whole definition', item));
}

/** @param {string | undefined} text */
const filled = text => {
    try {
        return Object.fromEntries(
            Object.entries(JSON.parse(text ?? '{}')).filter(([, it]) => typeof it === 'string' && it)
        );
    } catch {
        return {};
    }
};

/** @param {Connection} connection @param {any} item */
function resource(connection, item) {
    const panel = callPanel({
        connection,
        subject: item.uri,
        key: `resources ${item.uri}`,
        method: 'resources/read',
        schema: { type: 'object', additionalProperties: false },
        label: 'Read',
        params: () => `{"uri":${JSON.stringify(item.uri)}}`
    });
    return h(
        'div.column',
        null,
        heading(item, item.name),
        h('p.mono', null, link(item.uri)),
        h(
            'div.row',
            null,
            item.mimeType ? h('span.tag', null, item.mimeType) : null,
            item.size !== undefined ? h('span.tag', null, many(item.size, 'byte')) : null
        ),
        panel.element,
        folded('Whole definition', item)
    );
}

/** What was last read of a template. */
const READ = 'bowline-read';
/** @param {string} template */
const session = template => sessionStorage.getItem(`${READ} ${template}`) ?? '';
/** @param {string} template @param {string} params */
const remember = (template, params) => sessionStorage.setItem(`${READ} ${template}`, subjectOf(params));

/** @param {Connection} connection @param {any} item */
function template(connection, item) {
    const all = variables(item.uriTemplate);
    const text = { type: 'string' };
    const list = { anyOf: [text, { type: 'array', items: text }] };
    const schema = {
        type: 'object',
        additionalProperties: false,
        properties: Object.fromEntries(all.map(it => [it.name, it.isList ? list : text])),
        required: all.map(it => it.name)
    };
    const panel = callPanel({
        connection,
        subject: session(item.uriTemplate),
        begun: params => remember(item.uriTemplate, params),
        key: `templates ${item.uriTemplate}`,
        method: 'resources/read',
        schema,
        label: 'Read',
        params: args => {
            let values = {};
            try {
                values = JSON.parse(args);
            } catch {
                /* the draft is judged elsewhere */
            }
            return `{"uri":${JSON.stringify(expand(item.uriTemplate, values))}}`;
        },
        completeFor: completer(connection, { type: 'ref/resource', uri: item.uriTemplate }, () => filled(panel?.text()))
    });
    return h(
        'div.column',
        null,
        heading(item, item.name),
        h('p.mono', null, item.uriTemplate),
        panel.element,
        folded('Whole definition', item)
    );
}
