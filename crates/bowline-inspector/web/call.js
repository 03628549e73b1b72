// @ts-check
/** A call: its form, its progress, its result; again, changed, copied. */
import { copy, fill, h, time } from './dom.js';
import { form } from './form.js';
import { member } from './json.js';
import { act, Problem } from './program.js';
import { calls, listen, progress } from './store.js';
import { result } from './content.js';

let count = 0;
/** Drafts of arguments, by connection and name: what was typed survives a look at something else. */
const DRAFTS = 'bowline-drafts';
/** @returns {Record<string, string>} */
const drafts = () => { try { return JSON.parse(sessionStorage.getItem(DRAFTS) ?? '{}'); } catch { return {}; } };

/** @param {string} key @param {string} text */
function keep(key, text) {
    const all = drafts();
    delete all[key];
    all[key] = text;
    const entries = Object.entries(all).slice(-200);
    try { sessionStorage.setItem(DRAFTS, JSON.stringify(Object.fromEntries(entries))); } catch { /* full: drafts live on in the page */ }
}

/** @param {string} text for a shell */
const quoted = text => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`);

/** @param {any} place */
function words(place) {
    if (place?.url) return { before: quoted(place.url), after: '' };
    if (place?.command) return { before: '', after: ` -- ${[place.command, ...(place.args ?? [])].map(quoted).join(' ')}` };
    return { before: place?.name ? quoted(place.name) : 'TARGET', after: '' };
}

/** The same call elsewhere. @param {any} connection @param {string} method @param {string} params */
function copies(connection, method, params) {
    const { before, after } = words(connection.place?.given ? { ...(/^https?:/.test(connection.about) ? { url: connection.about } : { command: connection.about.split(' ')[0], args: connection.about.split(' ').slice(1) }) } : connection.place);
    const url = /^https?:/.test(connection.about) ? connection.about : null;
    const revision = connection.info?.protocolVersion ?? '2026-07-28';
    const name = member(params, 'name'), args = member(params, 'arguments') ?? '{}';
    const command = method === 'tools/call' ? `bowline call ${before} ${quoted(JSON.parse(name ?? '""'))} --json ${quoted(args)}${after}` : `bowline raw ${before} ${method} ${quoted(params)}${after}`;
    const modern = connection.info?.era === 'modern';
    const meta = modern ? `{"_meta":{"io.modelcontextprotocol/protocolVersion":"${revision}","io.modelcontextprotocol/clientInfo":{"name":"curl","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},${params.trim().slice(1)}`.replace(/,\}$/, '}') : params;
    const subject = name ?? member(params, 'uri');
    const curl = url && `curl ${quoted(url)} -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' -H 'mcp-protocol-version: ${revision}'${modern ? ` -H 'mcp-method: ${method}'${subject ? ` -H ${quoted(`mcp-name: ${JSON.parse(subject)}`)}` : ''}` : ''} -d ${quoted(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${meta}}`)}`;
    const rust = method === 'tools/call'
        ? `let client = bowline::Client::connect(${JSON.stringify(url ?? 'URL')}).await?;\nlet result = client.call_tool(${name}, serde_json::json!(${args})).await?;`
        : `let client = bowline::Client::connect(${JSON.stringify(url ?? 'URL')}).await?;\nlet result = client.call_json(${JSON.stringify(method)}, serde_json::json!(${params})).await?;`;
    return { command, curl, rust };
}

/**
 * The panel of a call.
 * @param {{connection: any, key: string, method: string, schema: any, label: string, params: (args: string) => string, initial?: string,
 *   completeFor?: (name: string) => ((value: string) => Promise<string[]>) | undefined, done?: (call: any) => any}} options
 */
export function callPanel(options) {
    const { connection, method } = options;
    const key = `${connection.about} ${options.key}`;
    const edit = form(options.schema, { initial: options.initial ?? drafts()[key], completeFor: options.completeFor, change: () => keep(key, edit.text()) });
    const outcome = h('div.column', { 'aria-live': 'polite' });
    const told = h('p.small', { role: 'alert' });
    let current = '';
    const send = async () => {
        told.textContent = '';
        if (!edit.isJson()) { told.textContent = 'The draft is not JSON; it cannot be sent as a message.'; return; }
        current = `${Date.now().toString(36)}-${++count}`;
        try { await act('call', { connection: connection.number, call: current, method }, { params: options.params(edit.text()) }); }
        catch (error) { const it = /** @type {Problem} */ (error); told.textContent = `${it.message}${it.remedy ? ` — ${it.remedy}` : ''}`; }
        show();
    };
    const menu = h('select', { 'aria-label': 'Copy as', class: 'state', onchange: () => {
        const made = copies(connection, method, options.params(edit.text()));
        const chosen = /** @type {any} */ (made)[menu.value];
        menu.value = '';
        if (chosen) copy(chosen);
    } }, h('option', { value: '' }, 'Copy as…'), h('option', { value: 'command' }, 'bowline command'), /^https?:/.test(connection.about) ? h('option', { value: 'curl' }, 'curl') : null, h('option', { value: 'rust' }, 'Rust'));
    const main = h('button.button.main', { type: 'submit' }, options.label);
    let shown = '';
    function show() {
        const call = calls.get(current);
        const at = progress.get(current);
        if (!call) return;
        const state = `${current} ${call.state} ${at?.progress} ${at?.message}`;
        if (state === shown) return;
        shown = state;
        fill(outcome, outcomeOf(call, at, options.done));
    }
    const stop = listen(kinds => { if (!element.isConnected && shown) return stop(); if (kinds.has('call') || kinds.has('progress') || kinds.has('cancelled')) show(); });
    const element = h('form.column', { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); send(); } },
        edit.element, h('div.row', null, main, menu, h('span.soft.small.hide-small', null, 'Ctrl+Enter')), told, outcome);
    element.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); send(); } });
    // The last outcome of the same thing is there again after a reload.
    const last = [...calls.values()].filter(it => it.connection === connection.number && it.method === method && options.params('{}').split(',')[0] === it.params.split(',')[0].replace(/}$/, options.params('{}').includes(',') ? '' : '}')).pop();
    if (last && options.initial === undefined) { current = last.call; show(); }
    return { element, text: edit.text };
}

/** @param {any} call @param {any} at @param {((call: any) => any) | undefined} done */
export function outcomeOf(call, at, done) {
    if (call.state === 'running') {
        const bar = h('progress', { 'aria-label': 'progress' });
        if (at?.total) { bar.max = at.total; bar.value = at.progress; }
        return h('div.card.column', null, h('div.row', null, h('span.tag.accent', null, 'running'), h('span.grow.soft', null, at ? `${at.progress}${at.total ? ` of ${at.total}` : ''} ${at.message ?? ''}` : 'waiting for the server'),
            h('button.button.small', { type: 'button', onclick: () => act('cancel', { call: call.call }) }, 'Cancel')), bar);
    }
    const wire = h('a.button.small', { href: `#/${call.connection}/wire?q=${encodeURIComponent(call.method)}` }, 'Messages');
    const head = (/** @type {string} */ kind, /** @type {string} */ word) => h('div.row', null, h(`span.tag.${kind}`, null, word), call.took ? h('span.soft.small', null, time(call.took)) : null, h('span.grow'), wire);
    if (call.state === 'done') return h('div.card.column', null, head(/"isError"\s*:\s*true/.test(call.result.slice(-200)) ? 'bad' : 'good', 'answered'), result(call.result, call.method), done?.(call));
    if (call.state === 'cancelled') return h('div.card', null, h('span.tag.warn', null, 'cancelled'));
    return h('div.card.bad.column', null, head('bad', 'failed'), h('p', null, call.problem?.what), call.problem?.remedy ? h('p.soft', null, `Help: ${call.problem.remedy}`) : null, call.error ? result(JSON.stringify(call.error), '') : null);
}

/** What was called before. @param {any} connection @param {(call: any) => void} again */
export function historyList(connection, again) {
    const all = [...calls.values()].filter(it => it.connection === connection.number).reverse().slice(0, 200);
    if (!all.length) return h('p.empty', null, 'No call has been made yet.');
    return h('div.column', null, all.map(call => h('details.card', null,
        h('summary', null, h('span.mono', null, `${call.method} ${(member(call.params, 'name') ?? member(call.params, 'uri') ?? '').replace(/^"|"$/g, '')}`), ' ', h(`span.tag.${call.state === 'done' ? 'good' : call.state === 'failed' ? 'bad' : 'warn'}`, null, call.state), call.took ? h('span.soft.small', null, ` ${time(call.took)}`) : null),
        h('div.column', null, h('div.row', null, h('button.button.small', { type: 'button', onclick: () => act('call', { connection: connection.number, call: `${Date.now().toString(36)}-r${++count}`, method: call.method }, { params: call.params }) }, 'Repeat'), h('button.button.small', { type: 'button', onclick: () => again(call) }, 'Edit and repeat')), outcomeOf(call, progress.get(call.call), undefined)))));
}
