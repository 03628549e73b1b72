// @ts-check
/** Every message on a timeline that can be zoomed, with its exact bytes. */
import { copy, download, fill, h, many, tabs, time, toast, virtual } from './dom.js';
import { member, pretty } from './json.js';
import { act, said } from './program.js';
import { Filter, hangs, statistics, ticks, waits, Wire } from './session.js';
import { clock, isLive, listen, nameOf, program } from './store.js';

/** @typedef {import('./store.js').Connection} Connection */
/** @typedef {import('./session.js').Row} Row */

const HEIGHT = 26;
/** How often what waits is looked at, while nothing is heard. */
const TICK_MS = 1000;
/** About how many times stand above the bars. */
const MARKS = 4;
/** How many rows are looked at before the next frame. */
const SLICE = 20_000;

/** The messages of a session file come from the program, once. @type {WeakMap<Connection, Wire>} */
const read = new WeakMap();

/** @param {Connection} connection @param {() => void} then @returns {Wire} */
export function wireOf(connection, then) {
    if (!connection.isFile) return connection.wire;
    let wire = read.get(connection);
    if (!wire) {
        const made = (wire = new Wire());
        read.set(connection, made);
        act('readSession', { connection: connection.number })
            .then(({ text }) => {
                for (const line of text.split('\n')) if (line) made.add(line);
                then();
            })
            .catch(error => toast(said(error)));
    }
    return wire;
}

/** Where the messages of a call are. @param {import('./store.js').Call} call */
export function messagesOf(call) {
    if (call.at === undefined || call.at === null)
        return `#/${call.connection}/wire?q=${encodeURIComponent(call.method)}`;
    // The clock of the program stops a little after the first byte.
    const to = call.took === undefined ? '' : `&to=${(call.at + call.took + 0.002).toFixed(4)}`;
    const from = Math.max(0, call.at - 0.0005).toFixed(4);
    return `#/${call.connection}/wire?from=${from}${to}&open=${encodeURIComponent(call.method)}`;
}

/** A message in full. @param {Row} row @param {() => void} close */
function message(row, close) {
    const part = (/** @type {string} */ label, /** @type {string} */ line) => {
        const raw = member(line, 'message') ?? member(line, 'http') ?? member(line, 'text') ?? line;
        const place = h('div', null, pretty(raw));
        let isExact = false;
        const exact = h(
            'button.button.small',
            {
                type: 'button',
                onclick: () => {
                    isExact = !isExact;
                    fill(place, pretty(raw, isExact));
                    exact.textContent = isExact ? 'Indented' : 'Exact bytes';
                }
            },
            'Exact bytes'
        );
        const bytes = h('span.soft.small', null, many(new TextEncoder().encode(raw).length, 'byte'));
        const copies = h('button.button.small', { type: 'button', onclick: () => copy(raw) }, 'Copy');
        return h('div.column', null, h('div.row', null, h('b', null, label), bytes, exact, copies), place);
    };
    const end = h('button.button.small', { type: 'button', 'aria-label': 'Close the message', onclick: close }, '✕');
    return [
        h('div.row', null, h('h2.grow.cut', null, row.what), end),
        part(row.kind === 'request' ? 'Request' : row.kind, row.line),
        row.answer ? part(`Answer after ${time(row.answer.at - row.at)}`, row.answer.line) : null
    ];
}

/** How it stands with what has no answer. @param {Row} row */
function endOf(row) {
    if (waits(row)) return 'open';
    if (row.until !== undefined) return 'no answer';
    return row.gap ? `+${time(row.gap)}` : '';
}

/** How long each method took. @param {Wire} wire */
function table(wire) {
    const rows = statistics(wire);
    if (!rows.length) return h('p.empty', null, 'No request yet.');
    const names = ['Method', 'Requests', 'Errors', 'Waiting', 'p50', 'p90', 'p99', 'Longest'];
    const cells = (/** @type {typeof rows[0]} */ it) => [
        it.count,
        it.errors,
        it.waiting,
        ...[it.p50, it.p90, it.p99, it.max].map(took => (it.answered ? time(took) : '–'))
    ];
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
                    names.map((it, at) => h(at ? 'th.right' : 'th', null, it))
                )
            ),
            h(
                'tbody',
                null,
                rows.map(it =>
                    h(
                        'tr',
                        null,
                        h('td.mono', null, it.method),
                        cells(it).map(one => h('td.right', null, one))
                    )
                )
            )
        )
    );
}

/** @param {HTMLElement} main @param {Connection} connection @param {URLSearchParams} query */
export function wireView(main, connection, query) {
    const wire = wireOf(connection, () => begin());
    /** What time it is in the session, as it is drawn. */
    let now = wire.end;
    const number = (/** @type {string} */ name) => (query.has(name) ? Number(query.get(name)) : undefined);
    /** The part of the timeline that is shown. @type {{from?: number, to?: number}} */
    let zoom = { from: number('from'), to: number('to') };
    /** @type {Row | null} */
    let chosen = null;
    let isTable = false;
    let wanted = query.get('open');
    let filter = new Filter(wire, {});
    const search = h('input', {
        type: 'search',
        placeholder: 'Filter: method, name, text, error, slow, waiting',
        'aria-label': 'Filter messages',
        value: query.get('q') ?? '',
        oninput: () => begin()
    });
    const http = h('input', { type: 'checkbox', onchange: () => begin() });
    const box = h('div.scroll', { role: 'list', tabindex: '0', 'aria-label': 'messages' });
    const scaled = h('span.scale');
    const axis = h(
        'div.axis',
        { 'aria-hidden': 'true' },
        ['Seconds', '', 'Message', 'Took'].map(it => h('span', null, it)),
        scaled
    );
    let marks = '';
    const count = h('span.soft.small', { role: 'status' });
    const bytes = h('section.bytes', { 'aria-label': 'the chosen message', hidden: true });
    const figures = h('div.scroll.figures', { hidden: true });
    const close = () => {
        bytes.hidden = true;
        chosen = null;
        rows.draw();
    };
    const open = (/** @type {Row} */ row) => {
        chosen = row;
        bytes.hidden = false;
        fill(bytes, message(row, close));
        rows.draw();
    };
    const draw = (/** @type {number} */ index) => {
        const row = filter.shown[index];
        const isPending = waits(row);
        const track = h('span.track', null, h('i'));
        track.style.setProperty('--at', String(row.at));
        if (!isPending) track.style.setProperty('--end', String(row.answer?.at ?? row.until ?? row.at));
        const isHang = hangs(row, now);
        const listens = isPending && row.method === 'subscriptions/listen';
        const states = { error: row.error, child: row.child, pending: isPending, listens, hang: isHang, gap: row.gap };
        const marks = Object.entries(states)
            .filter(([, is]) => is)
            .map(([name]) => `.${name}`)
            .join('');
        const took = row.answer ? time(row.answer.at - row.at) : isHang ? 'hangs' : endOf(row);
        const gap = row.gap ? `after ${time(row.gap)} of silence` : null;
        return h(
            'div',
            { role: 'listitem' },
            h(
                `button.line${marks}`,
                { type: 'button', 'aria-current': String(row === chosen), title: gap, onclick: () => open(row) },
                h('span.soft', null, row.at.toFixed(3)),
                h(
                    'span',
                    null,
                    row.way,
                    h('span.visually-hidden', null, row.way === '→' ? 'sent' : row.way === '←' ? 'received' : row.kind)
                ),
                h('span.cut.what', null, row.what),
                h('span.right', null, took),
                track
            )
        );
    };
    const keyOf = (/** @type {number} */ index) => {
        const row = filter.shown[index];
        return `${row.seq} ${waits(row) ? hangs(row, now) : 'over'} ${row === chosen}`;
    };
    const rows = virtual(box, HEIGHT, draw, keyOf);
    const whole = h(
        'button.button.small',
        {
            type: 'button',
            onclick: () => {
                zoom = {};
                begin();
            }
        },
        'Whole session'
    );
    const scale = (/** @type {number} */ by) => () => {
        const from = zoom.from ?? 0;
        const to = zoom.to ?? now;
        const middle = chosen?.at ?? (from + to) / 2;
        const half = Math.max(0.001, ((to - from) / 2) * by);
        zoom = { from: Math.max(0, middle - half), to: middle + half };
        if (zoom.from === 0 && (zoom.to ?? 0) >= now) zoom = {};
        begin();
    };
    /** Starts to filter anew. */
    function begin() {
        filter = new Filter(wire, { query: search.value, hasHttp: http.checked, ...zoom });
        refresh(false);
    }
    /** Draws the times above the bars. @param {number} from @param {number} to */
    function measure(from, to) {
        // A label at the end would be cut.
        const all = ticks(from, to, MARKS).filter(it => it.at - from < 0.9 * (to - from));
        const text = all.map(it => it.text).join(' ');
        if (text === marks) return;
        marks = text;
        fill(
            scaled,
            all.map(it => {
                const mark = h('span', null, `${it.text} s`);
                mark.style.setProperty('--at', String(it.at));
                return mark;
            })
        );
    }
    function refresh(mayFollow = true) {
        if (!box.isConnected) return;
        const isAtEnd = mayFollow && box.scrollTop + box.clientHeight > box.scrollHeight - 60;
        filter.update(SLICE);
        const from = zoom.from ?? 0;
        now = wire.now(isLive(connection) ? clock() : undefined);
        const to = zoom.to ?? now;
        const size = { from, whole: Math.max(to - from, 0.001), now };
        for (const it of [box, axis])
            for (const [name, value] of Object.entries(size)) it.style.setProperty(`--${name}`, String(value));
        measure(from, from + size.whole);
        const dropped = wire.dropped || program.hasDropped ? ', older ones were dropped' : '';
        const part = zoom.from === undefined ? '' : ` from ${from.toFixed(3)} s to ${to.toFixed(3)} s`;
        const [some, all] = [filter.shown.length, wire.rows.length].map(it => it.toLocaleString('en'));
        count.textContent = `${some} of ${all}${part}${dropped}`;
        whole.hidden = zoom.from === undefined;
        rows.resize(filter.shown.length);
        if (isAtEnd && box.clientHeight) box.scrollTop = filter.shown.length * HEIGHT;
        rows.now();
        if (isTable) fill(figures, table(wire));
        if (wanted !== null && filter.isDone) {
            const row = filter.shown.find(it => it.method === wanted) ?? filter.shown[0];
            wanted = null;
            if (row) open(row);
        }
        if (!filter.isDone) requestAnimationFrame(() => refresh());
    }
    const looks = tabs(
        'How to see the messages',
        [
            ['line', 'Timeline'],
            ['table', 'Figures']
        ],
        name => {
            isTable = name === 'table';
            looks.choose(name);
            box.hidden = axis.hidden = isTable;
            figures.hidden = !isTable;
            refresh(false);
        }
    );
    looks.choose('line');
    const zoomer = (/** @type {string} */ label, /** @type {string} */ sign, /** @type {number} */ by) =>
        h('button.button.small', { type: 'button', 'aria-label': label, onclick: scale(by) }, sign);
    const save = h(
        'button.button.small',
        { type: 'button', onclick: () => download('session.jsonl', wire.text()) },
        'Save'
    );
    const more = h('a.button.small', { href: `#/sessions?of=${connection.number}` }, 'Compare, replay, export');
    main.className = 'wire';
    fill(
        main,
        h(
            'div.wirebar.row',
            null,
            h('h1.visually-hidden', null, `Messages of ${nameOf(connection)}`),
            h('div.grow', null, search),
            h('label.row.small', null, http, 'HTTP heads'),
            looks.element,
            zoomer('Zoom in', '+', 0.25),
            zoomer('Zoom out', '−', 4),
            whole,
            count,
            save,
            more
        ),
        axis,
        box,
        figures,
        bytes
    );
    begin();
    const tick = setInterval(() => {
        if (!box.isConnected) return end();
        if (isLive(connection) && wire.now(clock()) > wire.end) refresh();
    }, TICK_MS);
    const stop = listen(kinds => {
        if (!box.isConnected) return end();
        if (kinds.has('wire')) refresh();
    });
    function end() {
        clearInterval(tick);
        stop();
    }
}
