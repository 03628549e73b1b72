// @ts-check
/** Sessions that were kept: opened, compared, replayed, exported, served again. */
import { download, fill, h, many } from './dom.js';
import { pretty } from './json.js';
import { act, said } from './program.js';
import { connections, listen, nameOf } from './store.js';
import { wireOf } from './wire.js';

/** @typedef {import('./store.js').Connection} Connection */

/** How many differences are shown. */
const MOST = 500;

/** The text of the session of a connection. @param {Connection} connection @returns {Promise<string>} */
async function textOf(connection) {
    if (connection.isFile) return (await act('readSession', { connection: connection.number })).text;
    return wireOf(connection, () => {}).text();
}

/** @param {unknown} it */
const value = it => (it === undefined || it === null ? h('span.soft', null, 'nothing') : pretty(JSON.stringify(it)));

/** @param {any[]} all @param {string} before @param {string} after */
function differences(all, before, after) {
    if (!all.length) return h('p', null, h('span.tag.good', null, 'nothing differs'));
    const head = h(
        'tr',
        null,
        ['Of', 'Where', before, after].map(it => h('th', null, it))
    );
    const rows = all
        .slice(0, MOST)
        .map(it =>
            h(
                'tr',
                null,
                h('td.mono', null, it.of),
                h('td.mono', null, it.path),
                h('td', null, value(it.before)),
                h('td', null, value(it.after))
            )
        );
    return h(
        'div.column',
        null,
        h(
            'p',
            null,
            h('span.tag.warn', null, many(all.length, 'difference')),
            all.length > MOST ? ` the first ${MOST} of them` : null
        ),
        h('div.tablebox', { tabindex: '0' }, h('table', null, h('thead', null, head), h('tbody', null, rows)))
    );
}

/** @param {HTMLElement} main @param {URLSearchParams} query */
export function recordedView(main, query) {
    const told = h('p', { role: 'alert' });
    const shown = h('div.column', { 'aria-live': 'polite' });
    const choice = (/** @type {string} */ label) => h('select', { 'aria-label': label });
    const [one, before, after, server] = [
        choice('Session'),
        choice('Before'),
        choice('After'),
        choice('Server to replay against')
    ];
    const attempt = (/** @type {() => Promise<unknown>} */ work) => async () => {
        told.textContent = '';
        try {
            await work();
        } catch (error) {
            told.textContent = said(error);
        }
    };
    const of = (/** @type {HTMLSelectElement} */ select) => {
        const found = connections.get(Number(select.value));
        if (!found) throw new Error('choose a session first');
        return found;
    };
    const file = h('input', {
        type: 'file',
        class: 'visually-hidden',
        'aria-label': 'Open a session file',
        tabindex: '-1',
        onchange: attempt(async () => {
            const [chosen] = file.files;
            const { connection } = await act('openSession', { name: chosen.name, text: await chosen.text() });
            file.value = '';
            location.hash = `#/${connection}/wire`;
        })
    });
    const side = async (/** @type {HTMLSelectElement} */ select, /** @type {boolean} */ isNow) => {
        const it = of(select);
        return isNow ? { connection: it.number } : { text: await textOf(it) };
    };
    const now = h('input', { type: 'checkbox' });
    const compare = attempt(async () => {
        fill(shown, h('progress', { 'aria-label': 'comparing' }));
        try {
            const found = await act('compare', {
                before: await side(before, now.checked),
                after: await side(after, now.checked)
            });
            fill(
                shown,
                h('h2', null, 'What differs'),
                differences(found.differences, nameOf(of(before)), nameOf(of(after)))
            );
        } catch (error) {
            fill(shown);
            throw error;
        }
    });
    const replay = attempt(async () => {
        await act('replay', { connection: of(server).number, text: await textOf(of(one)) });
    });
    const serve = attempt(async () => {
        const { connection } = await act('serve', { name: nameOf(of(one)), text: await textOf(of(one)) });
        location.hash = `#/${connection}`;
    });
    const write = (/** @type {string} */ to, /** @type {string} */ name) =>
        attempt(async () => download(name, (await act('export', { text: await textOf(of(one)), to })).text));
    const button = (/** @type {string} */ label, /** @type {() => void} */ onclick) =>
        h('button.button', { type: 'button', onclick }, label);
    /** @type {unknown} */
    let seen;
    const follow = () => {
        const it = connections.get(Number(server.value))?.replay;
        if (!it || it === seen) return;
        seen = it;
        if (it.state === 'running')
            fill(shown, h('p', null, 'Replaying…'), h('progress', { 'aria-label': 'replaying' }));
        else if (it.problem) fill(shown, h('div.card.bad', { role: 'alert' }, it.problem.what));
        else
            fill(
                shown,
                h('h2', null, `Sent again: ${many(it.requests, 'request')}`),
                differences(it.differences, 'Recorded', 'Now')
            );
    };
    const draw = () => {
        const all = [...connections.values()];
        for (const select of [one, before, after, server]) {
            const was = select.value;
            const fit = select === server ? all.filter(it => it.place) : all;
            fill(
                select,
                fit.map(it =>
                    h(
                        'option',
                        { value: String(it.number) },
                        `${it.number}: ${nameOf(it)}${it.isFile ? ' (file)' : ''}`
                    )
                )
            );
            if (was) select.value = was;
        }
    };
    const labelled = (/** @type {string} */ text, /** @type {HTMLElement} */ input) =>
        h('label.small.grow', null, text, input);
    main.className = '';
    fill(
        main,
        h(
            'div.column',
            null,
            h(
                'div.row',
                null,
                h('h1.grow', null, 'Sessions'),
                file,
                h('button.button.main', { type: 'button', onclick: () => file.click() }, 'Open a session file')
            ),
            h(
                'p.soft',
                null,
                'Every connection here is a session; files of --record and of bowline tap open beside them, ',
                'without a connection.'
            ),
            told,
            h(
                'section.card.column',
                null,
                h('h2', null, 'Compare'),
                h(
                    'div.row',
                    null,
                    labelled('Before', before),
                    labelled('After', after),
                    h('label.row.small', null, now, 'as the servers are now'),
                    button('Compare', compare)
                )
            ),
            h(
                'section.card.column',
                null,
                h('h2', null, 'Replay, serve, export'),
                h(
                    'div.row',
                    null,
                    labelled('Session', one),
                    labelled('Replay against', server),
                    button('Replay', replay)
                ),
                h(
                    'div.row',
                    null,
                    button('Serve it again', serve),
                    button('HAR', write('har', 'session.har')),
                    button('OpenTelemetry', write('otlp', 'session.otlp.json')),
                    button('HTML page', write('html', 'session.html'))
                )
            ),
            shown
        )
    );
    draw();
    const wanted = query.get('of');
    if (wanted) for (const select of [one, before, after]) select.value = wanted;
    if (!server.value && server.options.length) server.selectedIndex = 0;
    seen = connections.get(Number(server.value))?.replay;
    const end = listen(kinds => {
        if (!shown.isConnected) return end();
        if (kinds.has('connection') || kinds.has('forgotten')) draw();
        if (kinds.has('replay')) follow();
    });
}
