// @ts-check
/** Every message: requests paired with their answers, rounds and polls below their call, on a timeline. */
import { copy, download, fill, h, time, toast, virtual } from './dom.js';
import { member, pretty } from './json.js';
import { connections, listen } from './store.js';

/** @typedef {{at: number, way: string, what: string, kind: string, line: string, id?: string, answer?: {at: number, line: string, error: boolean}, child?: boolean, error?: boolean, http?: any, source: string}} Row */

/** The messages of one session. */
export class Wire {
    constructor() {
        /** @type {Row[]} */
        this.rows = [];
        /** @type {string[]} */
        this.lines = [];
        /** @type {Map<string, Row>} */
        this.waiting = new Map();
        /** @type {Set<string>} */
        this.states = new Set();
        /** @type {Set<string>} */
        this.tasks = new Set();
        this.end = 0;
    }

    /** @param {string} text a line of a session file */
    add(text) {
        let line;
        try { line = JSON.parse(text); } catch { return; }
        this.lines.push(text);
        this.end = Math.max(this.end, line.at ?? 0);
        const base = { at: line.at ?? 0, way: line.direction === 'sent' ? '→' : line.direction === 'received' ? '←' : '·', line: text, kind: line.kind, source: line.kind };
        if (line.kind !== 'message') {
            const what = line.kind === 'http' ? `${line.http.method} ${line.http.url}${line.http.status ? ` → ${line.http.status}` : ''}` : line.kind === 'session' ? 'session begins' : line.kind === 'end' ? `session ends ${line.text ?? ''}` : String(line.text ?? line.kind);
            this.rows.push({ ...base, what, error: line.kind === 'fault' || (line.http?.status ?? 0) >= 400 });
            return;
        }
        const message = line.message;
        for (const one of Array.isArray(message) ? message : [message]) this.message(base, line, one);
    }

    /** @param {any} base @param {any} line @param {any} it */
    message(base, line, it) {
        const lane = (/** @type {string} */ way) => `${way} ${line.connection ?? ''} ${JSON.stringify(it?.id)}`;
        if (it?.method && it.id !== undefined) {
            const p = it.params ?? {};
            const subject = p.name ?? p.uri ?? p.taskId ?? '';
            const isRound = p.requestState !== undefined && this.states.has(JSON.stringify(p.requestState));
            const row = { ...base, kind: 'request', what: `${it.method} ${subject}`.trim(), id: JSON.stringify(it.id), child: isRound || (it.method.startsWith('tasks/') && this.tasks.has(p.taskId)) };
            this.rows.push(row);
            this.waiting.set(lane(base.way), row);
        } else if (it?.method) {
            this.rows.push({ ...base, kind: 'notification', what: `${it.method} ${it.params?.message ?? it.params?.data ?? ''}`.trim() });
        } else if (it && it.id !== undefined && ('result' in it || 'error' in it)) {
            const key = lane(base.way === '→' ? '←' : '→');
            const asked = this.waiting.get(key);
            this.waiting.delete(key);
            const error = 'error' in it || it.result?.isError === true;
            if (it.result?.requestState !== undefined) this.states.add(JSON.stringify(it.result.requestState));
            const task = it.result?.task?.taskId ?? it.result?.taskId;
            if (task) this.tasks.add(task);
            if (asked) { asked.answer = { at: base.at, line: base.line, error }; asked.error = error; }
            else this.rows.push({ ...base, kind: 'answer', what: `answer ${JSON.stringify(it.id)} to nothing that was seen`, error });
        } else this.rows.push({ ...base, kind: 'noise', what: line.text ?? 'not a message', error: true });
    }
}

/** Sessions from files. @type {Map<string, Wire>} */
const loaded = new Map();

/** @param {HTMLElement} main @param {any} connection @param {URLSearchParams} query */
export function wireView(main, connection, query) {
    let wire = connection?.wire ?? new Wire();
    let chosen = /** @type {Row | null} */ (null);
    /** @type {Row[]} */
    let shown = [];
    let seen = -1;
    const search = h('input', { type: 'search', placeholder: 'Filter: method, name, text, error, slow', 'aria-label': 'Filter messages', value: query.get('q') ?? '', oninput: () => { seen = -1; refresh(); } });
    const http = h('input', { type: 'checkbox', onchange: () => { seen = -1; refresh(); } });
    const box = h('div.scroll', { role: 'list', tabindex: '0', 'aria-label': 'messages' });
    const count = h('span.soft.small', { role: 'status' });
    const bytes = h('section.bytes', { 'aria-label': 'the chosen message', hidden: true });
    const rows = virtual(box, 26, index => {
        const row = shown[index];
        const end = row.answer?.at ?? (row.kind === 'request' ? wire.end : row.at);
        const track = h('span.track', null, h('i'));
        const whole = Math.max(wire.end, 0.001);
        track.firstChild.style.left = `${Math.min(99.5, (row.at / whole) * 100)}%`;
        track.firstChild.style.width = `${((end - row.at) / whole) * 100}%`;
        const isPending = row.kind === 'request' && !row.answer;
        const button = h(`button.line${row.error ? '.error' : ''}${row.child ? '.child' : ''}${isPending ? '.pending' : ''}`, { type: 'button', 'aria-current': String(row === chosen), onclick: () => open(row) },
            h('span.soft', null, row.at.toFixed(3)), h('span', { 'aria-label': row.way === '→' ? 'sent' : row.way === '←' ? 'received' : row.kind }, row.way), h('span.cut.what', null, row.what), h('span.right', null, row.answer ? time(row.answer.at - row.at) : isPending ? 'waits' : ''), track);
        return h('div', { role: 'listitem' }, button);
    });
    /** @param {Row} row */
    function open(row) {
        chosen = row;
        rows.draw();
        const part = (/** @type {string} */ label, /** @type {string} */ line) => {
            const raw = member(line, 'message') ?? member(line, 'http') ?? member(line, 'text') ?? line;
            const place = h('div', null, pretty(raw));
            return h('div.column', null, h('div.row', null, h('b', null, label), h('span.soft.small', null, `${new TextEncoder().encode(raw).length} bytes`), h('button.button.small', { type: 'button', onclick: (/** @type {any} */ event) => { const exact = event.target.textContent === 'Exact bytes'; fill(place, pretty(raw, exact)); event.target.textContent = exact ? 'Indented' : 'Exact bytes'; } }, 'Exact bytes'), h('button.button.small', { type: 'button', onclick: () => copy(raw) }, 'Copy')), place);
        };
        bytes.hidden = false;
        fill(bytes, h('div.row', null, h('h2.grow.cut', null, row.what), h('button.button.small', { type: 'button', 'aria-label': 'Close the message', onclick: () => { bytes.hidden = true; chosen = null; rows.draw(); } }, '✕')), part(row.kind === 'request' ? 'Request' : row.kind, row.line), row.answer ? part(`Answer after ${time(row.answer.at - row.at)}`, row.answer.line) : null);
    }
    function refresh() {
        if (wire.rows.length === seen) { rows.draw(); return; }
        seen = wire.rows.length;
        const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
        const fits = (/** @type {Row} */ row, /** @type {string} */ word) => word === 'error' ? row.error : word === 'slow' ? (row.answer ? row.answer.at - row.at > 1 : row.kind === 'request') : row.what.toLowerCase().includes(word) || row.line.toLowerCase().includes(word) || row.kind === word;
        shown = wire.rows.filter((/** @type {Row} */ row) => (http.checked || row.kind !== 'http') && words.every(/** @param {string} word */ word => fits(row, word)));
        count.textContent = `${shown.length.toLocaleString('en')} of ${wire.rows.length.toLocaleString('en')}`;
        const isAtEnd = box.scrollTop + box.clientHeight > box.scrollHeight - 60;
        rows.resize(shown.length);
        if (isAtEnd && box.clientHeight) box.scrollTop = shown.length * 26;
        rows.now();
    }
    const file = h('input', { type: 'file', class: 'visually-hidden', id: 'session-file', 'aria-label': 'Open a session file', tabindex: '-1', onchange: async () => {
        const [chosenFile] = file.files;
        const next = new Wire();
        for (const line of (await chosenFile.text()).split('\n')) if (line) next.add(line);
        if (!next.lines.length) return toast('This is not a session file');
        loaded.set(chosenFile.name, next);
        wire = next;
        choose();
        sessions.value = `file:${chosenFile.name}`;
        seen = -1;
        refresh();
    } });
    const sessions = h('select', { 'aria-label': 'Session', class: 'state', onchange: () => { const [kind, name] = sessions.value.split(/:(.*)/s); wire = (kind === 'file' ? loaded.get(name) : connections.get(Number(name))?.wire) ?? wire; seen = -1; bytes.hidden = true; refresh(); } });
    const choose = () => fill(sessions, [...connections.values()].map(it => h('option', { value: `live:${it.number}` }, it.info?.serverInfo?.name ?? it.about)), [...loaded.keys()].map(it => h('option', { value: `file:${it}` }, it)));
    choose();
    if (connection) sessions.value = `live:${connection.number}`;
    main.className = 'wire';
    fill(main, h('div.wirebar.row', null, h('h1.visually-hidden', null, 'Messages'), h('div.grow', null, search), h('label.row.small', null, http, 'HTTP heads'), count, sessions, file,
        h('button.button.small', { type: 'button', onclick: () => file.click() }, 'Open file'), h('button.button.small', { type: 'button', onclick: () => download('session.jsonl', `${wire.lines.join('\n')}\n`) }, 'Save')), box, bytes);
    refresh();
    const stop = listen(kinds => { if (!box.isConnected) return stop(); if (kinds.has('connection')) { const was = sessions.value; choose(); sessions.value = was; } if (kinds.has('wire')) refresh(); });
}

/** What the server logged. @param {HTMLElement} main @param {any} connection */
export function logView(main, connection) {
    main.className = '';
    const rows = connection.wire.rows.filter((/** @type {Row} */ row) => row.source === 'stderr' || row.source === 'fault' || row.what.startsWith('notifications/message'));
    fill(main, h('div.column', null, h('h1', null, 'Logs'), h('p.soft', null, 'Standard error, log messages and faults of the server.'),
        rows.length ? h('div.tablebox', { tabindex: '0' }, h('table', null, h('tbody', null, rows.slice(-2000).map((/** @type {Row} */ row) => {
            const params = row.kind === 'notification' ? JSON.parse(member(member(row.line, 'message') ?? '{}', 'params') ?? '{}') : null;
            return h('tr', null, h('td.mono.soft', null, row.at.toFixed(3)), h('td', null, h(`span.tag.${row.error ? 'bad' : params ? 'accent' : 'none'}`, null, params ? params.level : row.source)), h('td.mono', null, params ? (typeof params.data === 'string' ? params.data : JSON.stringify(params.data)) : row.what));
        })))) : h('p.empty', null, 'Nothing has been logged.')));
}
