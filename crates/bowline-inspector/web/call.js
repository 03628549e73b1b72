// @ts-check
/** A call: its form, its progress, its result; again, changed, named, copied. */
import { copy, fill, h, keyed, time, toast } from './dom.js';
import { form } from './form.js';
import { copies } from './copies.js';
import { problemOf, textMember } from './json.js';
import { act, attempt, said } from './program.js';
import { calls, feed, listen, progress } from './store.js';
import { result } from './content.js';
import { messagesOf } from './wire.js';

/**
 * @typedef {import('./store.js').Connection} Connection
 * @typedef {import('./store.js').Call} Call
 * @typedef {import('./form.js').Draft} Draft
 * @typedef {{connection: Connection, key: string, method: string, schema: unknown, label: string, subject: string,
 *   params: (args: string) => string, initial?: Draft,
 *   completeFor?: (name: string) => ((value: string) => Promise<string[]>) | undefined,
 *   beside?: (call: Call) => HTMLElement, before?: () => Promise<void>, begun?: (params: string) => void}} PanelOptions
 */

let count = 0;
/** A name for a call. */
export const callName = () => `${Date.now().toString(36)}-${++count}`;

/** Drafts of arguments, by connection and name: what was typed survives a look at something else. */
const DRAFTS = 'bowline-drafts';
/** Named calls, which stay. */
const NAMED = 'bowline-named';

/** @param {Storage} store @param {string} name @returns {Record<string, any>} */
function load(store, name) {
    try {
        return JSON.parse(store.getItem(name) ?? '{}');
    } catch {
        return {};
    }
}

/** @param {string} key @param {Draft} draft */
function keep(key, draft) {
    const { [key]: _, ...all } = load(sessionStorage, DRAFTS);
    const entries = [...Object.entries(all), [key, draft]].slice(-200);
    try {
        sessionStorage.setItem(DRAFTS, JSON.stringify(Object.fromEntries(entries)));
    } catch {
        // Full: drafts live on in the page.
    }
}

/** What a call is about: the name of a tool or prompt, or a URI. @param {string} params */
export const subjectOf = params =>
    textMember(params, 'name') ?? textMember(params, 'uri') ?? textMember(params, 'taskId') ?? '';

/** The panel of a call. @param {PanelOptions} options */
export function callPanel(options) {
    const { connection, method } = options;
    const key = `${connection.about} ${options.key}`;
    const place = h('div');
    const begin = (/** @type {Draft | undefined} */ initial) => {
        const made = form(options.schema, {
            initial,
            completeFor: options.completeFor,
            change: () => keep(key, made.draft())
        });
        fill(place, made.element);
        return made;
    };
    let edit = begin(options.initial ?? load(sessionStorage, DRAFTS)[key]);
    const outcome = h('div.column', { 'aria-live': 'polite' });
    const told = h('p.small', { role: 'alert' });
    let current = '';
    const send = async () => {
        told.textContent = '';
        if (!edit.isJson()) {
            told.textContent = 'The draft is not JSON; it cannot be sent as a message.';
            return;
        }
        await options.before?.();
        current = callName();
        const params = options.params(edit.text());
        try {
            await act('call', { connection: connection.number, call: current, method }, { params });
            options.begun?.(params);
        } catch (error) {
            told.textContent = said(error);
        }
        show();
    };
    const menu = h(
        'select.state',
        {
            'aria-label': 'Copy as',
            onchange: () => {
                const chosen = copies(connection, method, options.params(edit.text()))[menu.value];
                menu.value = '';
                if (chosen) copy(chosen);
            }
        },
        h('option', { value: '' }, 'Copy as…'),
        h('option', { value: 'command' }, 'bowline command'),
        connection.place?.url ? h('option', { value: 'curl' }, 'curl') : null,
        h('option', { value: 'rust' }, 'Rust')
    );
    const named = namedCalls(
        key,
        () => edit.draft(),
        draft => {
            edit = begin(draft);
            keep(key, draft);
        }
    );
    const main = h('button.button.main', { type: 'submit' }, options.label);
    const beside = h('div.column');
    let attended = '';
    let shown = '';
    function show() {
        const call = calls.get(current);
        const at = progress.get(current);
        if (!call) return;
        const state = `${current} ${call.state} ${at?.progress} ${at?.message}`;
        if (state === shown) return;
        shown = state;
        fill(outcome, outcomeOf(call, at));
        // What stands beside a call is there from its beginning to its end, and longer.
        if (options.beside && attended !== current) fill(beside, options.beside(call));
        attended = current;
    }
    // What was called before may come after the lists, when a long history is read.
    let isReading = !feed.isCurrent;
    const stop = listen(kinds => {
        if (!element.isConnected) return stop();
        if (isReading) restore();
        isReading = !feed.isCurrent;
        if (kinds.has('call') || kinds.has('progress')) show();
    });
    const element = h(
        'form.column',
        {
            onsubmit: (/** @type {Event} */ event) => {
                event.preventDefault();
                send();
            }
        },
        place,
        h('div.row', null, main, menu, named, h('span.soft.small.hide-small', null, 'Ctrl+Enter')),
        told,
        outcome,
        beside
    );
    element.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            send();
        }
    });
    /** The last outcome of the same thing is there again after a reload. */
    function restore() {
        if (current || options.initial !== undefined) return;
        const isSame = (/** @type {Call} */ it) =>
            it.connection === connection.number && it.method === method && subjectOf(it.params) === options.subject;
        current = [...calls.values()].findLast(isSame)?.call ?? '';
        show();
    }
    restore();
    return { element, text: () => edit.text() };
}

/** Calls that were given a name. @param {string} key @param {() => Draft} now @param {(draft: Draft) => void} use */
function namedCalls(key, now, use) {
    const all = () => /** @type {Record<string, Draft>} */ (load(localStorage, NAMED)[key] ?? {});
    const put = (/** @type {Record<string, Draft>} */ next) => {
        try {
            localStorage.setItem(NAMED, JSON.stringify({ ...load(localStorage, NAMED), [key]: next }));
        } catch {
            toast('There is no more room to keep it');
        }
        draw();
    };
    const menu = h('select.state', {
        'aria-label': 'Named calls',
        onchange: () => {
            const [what, name] = [menu.value.slice(0, 1), menu.value.slice(1)];
            menu.value = '';
            const { [name]: found, ...rest } = all();
            if (what === '=' && found) use(found);
            if (what === '-') put(rest);
            if (what === '+') {
                input.hidden = false;
                input.focus();
            }
        }
    });
    const input = h('input', {
        type: 'text',
        hidden: true,
        placeholder: 'Name, then Enter',
        'aria-label': 'Name of the call',
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
            if (event.key === 'Escape') input.hidden = true;
            if (event.key !== 'Enter') return;
            event.preventDefault();
            if (input.value.trim()) put({ ...all(), [input.value.trim()]: now() });
            input.value = '';
            input.hidden = true;
        }
    });
    const draw = () => {
        const names = Object.keys(all());
        const option = (/** @type {string} */ value, /** @type {string} */ text) => h('option', { value }, text);
        fill(
            menu,
            option('', names.length ? `Named calls (${names.length})` : 'Named calls'),
            names.map(it => option(`=${it}`, it)),
            option('+', 'Save this one…'),
            names.map(it => option(`-${it}`, `Delete ${it}`))
        );
        menu.value = '';
    };
    draw();
    return h('span.row', null, menu, input);
}

/** @param {Call} call @param {import('./store.js').Progress | undefined} at */
export function outcomeOf(call, at) {
    if (call.state === 'running') {
        const bar = h('progress', { 'aria-label': 'progress' });
        if (at?.total) {
            bar.max = at.total;
            bar.value = at.progress;
        }
        const words = at
            ? `${at.progress}${at.total ? ` of ${at.total}` : ''} ${at.message ?? ''}`
            : 'waiting for the server';
        const cancel = h(
            'button.button.small',
            { type: 'button', onclick: attempt(() => act('cancel', { call: call.call })) },
            'Cancel'
        );
        return h(
            'div.card.column',
            null,
            h('div.row', null, h('span.tag.accent', null, 'running'), h('span.grow.soft', null, words), cancel),
            bar
        );
    }
    const wire = h('a.button.small', { href: messagesOf(call) }, 'Messages');
    const head = (/** @type {string} */ kind, /** @type {string} */ word) =>
        h(
            'div.row',
            null,
            h(`span.tag.${kind}`, null, word),
            call.took ? h('span.soft.small', null, time(call.took)) : null,
            h('span.grow'),
            wire
        );
    if (call.state === 'done')
        return h(
            'div.card.column',
            null,
            head(call.isError ? 'bad' : 'good', 'answered'),
            call.mismatch === undefined
                ? null
                : call.mismatch === null
                  ? h('p.soft.small', null, 'The structured content is what the output schema promises.')
                  : h('p', null, h('span.tag.bad', null, 'not what the output schema promises'), ' ', call.mismatch),
            result(call.result ?? 'null', call.method, call.connection)
        );
    if (call.state === 'cancelled') return h('div.card', null, head('warn', 'cancelled'));
    return h(
        'div.card.bad.column',
        null,
        head('bad', 'failed'),
        h('p', null, call.problem?.what),
        call.problem?.remedy ? h('p.soft', null, `Help: ${call.problem.remedy}`) : null,
        call.error ? result(JSON.stringify(call.error), '') : null
    );
}

/**
 * What was called before. @param {HTMLElement} main @param {Connection} connection
 * @param {(call: Call) => boolean} again opens the form of what was called, if there is one
 */
export function historyView(main, connection, again) {
    const list = h('div.column');
    const empty = h('p.empty', null, 'No call has been made yet.');
    main.className = '';
    fill(main, h('div.column', null, h('h1', null, 'Calls'), empty, list));
    const kind = (/** @type {Call} */ call) =>
        call.state === 'done' ? (call.isError ? 'bad' : 'good') : call.state === 'failed' ? 'bad' : 'warn';
    const repeat = (/** @type {Call} */ call, params = call.params) =>
        act('call', { connection: connection.number, call: callName(), method: call.method }, { params }).catch(error =>
            toast(said(error))
        );
    /** The parameters of what has no form of its own. @param {Call} call */
    const editor = call => {
        const told = h('p.small', { role: 'alert' });
        const area = h('textarea', {
            'aria-label': 'Parameters as JSON',
            rows: '6',
            spellcheck: 'false',
            value: call.params
        });
        const send = () => {
            told.textContent = problemOf(area.value);
            if (!told.textContent) repeat(call, area.value);
        };
        const button = h('button.button.small.main', { type: 'button', onclick: send }, 'Send');
        return h('div.column', null, area, h('div', null, button), told);
    };
    const paint = (/** @type {HTMLElement} */ element, /** @type {Call} */ call) => {
        const at = progress.get(call.call);
        const state = `${call.state} ${at?.progress} ${at?.message}`;
        if (element.dataset.state === state) return;
        element.dataset.state = state;
        const [summary, body] = element.children;
        fill(
            summary,
            h('span.mono', null, `${call.method} ${subjectOf(call.params)}`),
            ' ',
            h(`span.tag.${kind(call)}`, null, call.state),
            call.took ? h('span.soft.small', null, ` ${time(call.took)}`) : null
        );
        const edit = () => {
            if (!again(call)) fill(draft, editor(call));
        };
        const draft = h('div');
        const show = () =>
            fill(
                body,
                h(
                    'div.row',
                    null,
                    h('button.button.small', { type: 'button', onclick: () => repeat(call) }, 'Repeat'),
                    h('button.button.small', { type: 'button', onclick: edit }, 'Edit and repeat')
                ),
                draft,
                outcomeOf(call, at)
            );
        if (/** @type {HTMLDetailsElement} */ (element).open) show();
        element.ontoggle = () => {
            if (!body.childElementCount) show();
        };
        if (!(/** @type {HTMLDetailsElement} */ (element).open)) fill(body);
    };
    const draw = () => {
        const all = [...calls.values()]
            .filter(it => it.connection === connection.number)
            .reverse()
            .slice(0, 200);
        empty.hidden = all.length > 0;
        keyed(
            list,
            all,
            it => it.call,
            call => {
                const element = h('details.card', null, h('summary'), h('div.column'));
                paint(element, call);
                return element;
            },
            paint
        );
    };
    draw();
    const stop = listen(kinds => {
        if (!list.isConnected) return stop();
        if (kinds.has('call') || kinds.has('progress')) draw();
    });
}
