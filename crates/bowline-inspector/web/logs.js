// @ts-check
/** What a server says beside its messages: standard error, log messages and faults. */
import { fill, h } from './dom.js';
import { member } from './json.js';
import { act, said } from './program.js';
import { listen } from './store.js';

/** @typedef {import('./store.js').Connection} Connection */
/** @typedef {import('./session.js').Row} Row */

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

/** What the server logged. @param {HTMLElement} main @param {Connection} connection */
export function logView(main, connection) {
    const { wire } = connection;
    const body = h('tbody');
    const box = h('div.tablebox', { tabindex: '0', hidden: true }, h('table', null, body));
    const empty = h('p.empty', null, 'Nothing has been logged.');
    const told = h('p.small', { role: 'alert' });
    const level = h(
        'select.state',
        {
            'aria-label': 'Level of log messages',
            onchange: async () => {
                told.textContent = '';
                try {
                    await act('logLevel', { connection: connection.number, level: level.value || null });
                } catch (error) {
                    told.textContent = said(error);
                }
            }
        },
        h('option', { value: '' }, 'as the server likes'),
        LEVELS.map(it => h('option', { value: it }, `${it} and above`))
    );
    let seen = 0;
    const row = (/** @type {Row} */ it) => {
        const params =
            it.kind === 'notification'
                ? JSON.parse(member(member(it.line, 'message') ?? '{}', 'params') ?? '{}')
                : null;
        const text = params ? (typeof params.data === 'string' ? params.data : JSON.stringify(params.data)) : it.what;
        const tag = h(
            `span.tag.${it.error ? 'bad' : params ? 'accent' : 'none'}`,
            null,
            params ? params.level : it.source
        );
        return h('tr', null, h('td.mono.soft', null, it.at.toFixed(3)), h('td', null, tag), h('td.mono', null, text));
    };
    const isLog = (/** @type {Row} */ it) =>
        it.source === 'stderr' || it.source === 'fault' || it.method === 'notifications/message';
    const refresh = () => {
        const fresh = wire.rows
            .slice(Math.max(0, seen - wire.first))
            .filter(isLog)
            .slice(-2000);
        seen = wire.next;
        body.append(...fresh.map(row));
        while (body.childElementCount > 2000) body.firstElementChild?.remove();
        box.hidden = !body.childElementCount;
        empty.hidden = !box.hidden;
    };
    main.className = '';
    const offers = connection.info?.capabilities?.logging;
    fill(
        main,
        h(
            'div.column',
            null,
            h('div.row', null, h('h1.grow', null, 'Logs'), offers ? h('label.row.small', null, 'Send', level) : null),
            h('p.soft', null, 'Standard error, log messages and faults of the server.'),
            told,
            box,
            empty
        )
    );
    refresh();
    const stop = listen(kinds => {
        if (!body.isConnected) return stop();
        if (kinds.has('wire')) refresh();
    });
}
