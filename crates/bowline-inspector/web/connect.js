// @ts-check
/** Where to connect to: an address, a command, a configured name, a pasted configuration; and how it went. */
import { fill, h, many, time } from './dom.js';
import { markdown } from './markdown.js';
import { act, attempt, said } from './program.js';
import { isLive } from './store.js';

/** Splits a command as a shell would, without running one. @param {string} text */
export function splitWords(text) {
    const words = [];
    const rule = /\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\s"'\\])+)/gy;
    for (let found; (found = rule.exec(text));)
        words.push(
            found[1].replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)/g, (_, double, single, one) =>
                double !== undefined ? double.replace(/\\(["\\$`])/g, '$1') : (single ?? one)
            )
        );
    return words;
}

/** @param {HTMLElement} main @param {URLSearchParams} query */
export function connectView(main, query) {
    const told = h('p', { role: 'alert' });
    const linked = query.get('target');
    const input = h('input', {
        type: 'text',
        placeholder: 'https://example.com/mcp   or   npx -y my-server',
        'aria-label': 'Address or command',
        value: linked ?? '',
        autocomplete: 'off',
        spellcheck: 'false'
    });
    const revision = h(
        'select',
        { 'aria-label': 'Protocol', class: 'state' },
        [
            ['', 'find out'],
            ['modern', 'modern era'],
            ['legacy', 'legacy era'],
            '2026-07-28',
            '2025-11-25',
            '2025-06-18',
            '2025-03-26',
            '2024-11-05'
        ].map(it => h('option', { value: Array.isArray(it) ? it[0] : it }, Array.isArray(it) ? it[1] : it))
    );
    const connect = async (/** @type {any} */ place) => {
        told.textContent = '';
        try {
            const { connection } = await act('connect', {
                place,
                ...(revision.value ? { revision: revision.value } : {})
            });
            location.hash = `#/${connection}`;
        } catch (error) {
            told.textContent = said(error);
        }
    };
    const headers = h('textarea', {
        rows: '2',
        'aria-label': 'Headers or variables',
        placeholder: 'Authorization: Bearer …   or   NAME=value, one per line'
    });
    const start = () => {
        const text = input.value.trim();
        if (!text) return;
        const lines = headers.value
            .split('\n')
            .map((/** @type {string} */ it) => it.trim())
            .filter(Boolean);
        const pairs = (/** @type {string} */ by) =>
            Object.fromEntries(
                lines.map((/** @type {string} */ it) => {
                    const at = it.indexOf(by);
                    return at < 0 ? [it, ''] : [it.slice(0, at).trim(), it.slice(at + 1).trim()];
                })
            );
        if (/^https?:\/\//.test(text)) return connect({ url: text, headers: pairs(':') });
        const [command, ...args] = splitWords(text);
        return connect({ command, args, env: pairs('=') });
    };
    const pasted = h('textarea', {
        rows: '5',
        'aria-label': 'JSON of a client',
        placeholder: '{ "mcpServers": { "name": { "command": "npx", "args": ["-y", "…"] } } }'
    });
    const found = h('div.column');
    const read = async () => {
        try {
            const servers = await act('readConfig', { text: pasted.value });
            fill(
                found,
                servers.map((/** @type {any} */ it) =>
                    offer(it.name, it.place.url ?? [it.place.command, ...(it.place.args ?? [])].join(' '), () =>
                        connect(it.place)
                    )
                )
            );
        } catch (error) {
            fill(found, h('p', { role: 'alert' }, /** @type {Error} */ (error).message));
        }
    };
    const offer = (
        /** @type {string} */ name,
        /** @type {string} */ about,
        /** @type {() => void} */ go,
        /** @type {string} */ word = 'Connect',
        /** @type {any} */ tag = null
    ) =>
        h(
            'div.card.row',
            null,
            h('div.grow', null, h('b', null, name), ' ', tag, h('div.mono.small.soft', null, about)),
            h('button.button', { type: 'button', onclick: go, 'aria-label': `${word} ${name}` }, word)
        );
    const configured = h('div.column', null, h('p.soft', null, 'Looking…'));
    act('targets')
        .then(({ servers, taps }) =>
            fill(
                configured,
                servers.map((/** @type {any} */ it) =>
                    offer(
                        it.name,
                        `${it.about} · ${it.file}`,
                        () => connect({ name: it.name, trust: !it.trusted }),
                        it.trusted ? 'Connect' : 'Trust and connect',
                        it.trusted ? null : h('span.tag.warn', null, 'project file, not trusted')
                    )
                ),
                taps.map((/** @type {any} */ it) =>
                    offer(
                        'Tap',
                        it.path,
                        attempt(async () => {
                            location.hash = `#/${(await act('watchTap', { path: it.path })).connection}/wire`;
                        }),
                        'Watch',
                        h('span.tag.accent', null, 'live')
                    )
                ),
                servers.length + taps.length
                    ? null
                    : h('p.soft', null, 'No server is configured for any client on this machine, and no tap runs.')
            )
        )
        .catch(error => fill(configured, h('p', null, error.message)));
    main.className = '';
    fill(
        main,
        h(
            'div.column',
            null,
            h('h1', null, 'Connect to a server'),
            linked
                ? h(
                      'div.card.bad',
                      { role: 'alert' },
                      h('b', null, 'A link asks to connect to this server.'),
                      h(
                          'p',
                          null,
                          'Nothing has been started. Connect only if you know what it does: a command runs as you.'
                      ),
                      h('pre', { tabindex: '0' }, linked)
                  )
                : null,
            h(
                'form.card.column',
                {
                    onsubmit: (/** @type {Event} */ event) => {
                        event.preventDefault();
                        start();
                    }
                },
                h('h2', null, 'Address or command'),
                input,
                h('details', null, h('summary', null, 'Headers or environment'), headers),
                h(
                    'div.row',
                    null,
                    h('button.button.main', { type: 'submit' }, 'Connect'),
                    h('label.row.small.soft', null, 'Protocol', revision)
                ),
                told
            ),
            h(
                'div.card.column',
                null,
                h('h2', null, 'Paste a client’s configuration'),
                pasted,
                h('div', null, h('button.button', { type: 'button', onclick: read }, 'Read')),
                found
            ),
            h('h2', null, 'On this machine'),
            configured
        )
    );
    if (!linked) input.focus();
}

/** What the doctor found. @param {any} doctor */
export function doctorReport(doctor) {
    if (!doctor) return null;
    if (doctor.state === 'running')
        return h(
            'div.card',
            null,
            h('span.tag.accent', null, 'the doctor walks to the server'),
            h('progress', { 'aria-label': 'the doctor is at work' })
        );
    if (doctor.problem) return h('div.card.bad', null, doctor.problem.what);
    const steps = doctor.report?.steps ?? [];
    const kind = (/** @type {string} */ it) => ({ ok: 'good', warn: 'warn', fail: 'bad' })[it] ?? '';
    return h(
        'div.card.column',
        null,
        h('h2', null, 'The doctor’s report'),
        h(
            'div',
            null,
            steps
                .filter((/** @type {any} */ it) => it.outcome !== 'skipped')
                .map((/** @type {any} */ it) =>
                    h(
                        'div.step',
                        null,
                        h('div', null, h(`span.tag.${kind(it.outcome) || 'none'}`, null, it.outcome)),
                        h('b', null, it.step ?? it.name),
                        h(
                            'div',
                            null,
                            it.seen,
                            it.cause ? h('div', null, h('b', null, 'Cause: '), it.cause) : null,
                            it.fix ? h('div', null, h('b', null, 'Fix: '), it.fix) : null
                        )
                    )
                )
        )
    );
}

/** The folders that the server may ask for. @param {any} connection */
function roots(connection) {
    const told = h('p.small', { role: 'status' });
    const area = h('textarea', {
        rows: '3',
        'aria-label': 'Roots, one URI per line',
        placeholder: 'file:///srv/project'
    });
    const offer = async () => {
        const uris = area.value
            .split('\n')
            .map((/** @type {string} */ it) => it.trim())
            .filter(Boolean);
        try {
            await act('roots', { connection: connection.number, uris });
            told.textContent = `The server is offered ${many(uris.length, 'root')}.`;
        } catch (error) {
            told.textContent = said(error);
        }
    };
    return h(
        'details.card',
        null,
        h('summary', null, 'Roots'),
        h(
            'div.column',
            null,
            h('p.soft', null, 'Folders that the server may ask for, one URI per line.'),
            area,
            h('div', null, h('button.button', { type: 'button', onclick: offer }, 'Offer them')),
            told
        )
    );
}

/** What became of a request of the search for the era. @param {any} it */
function stepWords(it) {
    const refused = it.refused ?? (it.status ? `HTTP ${it.status}` : null);
    const answered = it.seconds === undefined ? 'not answered' : it.late ? 'answered too late' : 'answered';
    const took = it.seconds === undefined ? '' : ` in ${time(it.seconds)}`;
    return `${it.method} ${refused ? `refused (${refused})` : answered}${took}`;
}

/** One connection: what it is, or why not. @param {HTMLElement} main @param {any} connection */
export function overview(main, connection) {
    main.className = '';
    const { info } = connection;
    const again = h(
        'button.button',
        {
            type: 'button',
            onclick: attempt(async () => {
                const it = await act('connectAgain', { connection: connection.number });
                // What is over keeps its messages, until it is closed.
                if (isLive(connection)) await act('close', { connection: connection.number });
                location.hash = `#/${it.connection}`;
            })
        },
        'Connect again'
    );
    const close = h(
        'button.button',
        {
            type: 'button',
            onclick: attempt(async () => {
                await act('close', { connection: connection.number });
                location.hash = '#/';
            })
        },
        'Disconnect'
    );
    const steps = (info?.connection?.steps ?? []).map(stepWords);
    const facts = info
        ? [
              ['Server', `${info.serverInfo?.name ?? 'does not identify itself'} ${info.serverInfo?.version ?? ''}`],
              ['Protocol', `${info.protocolVersion} (${info.era} era)`],
              ['Found by', steps.join(', then ')],
              ['Speaks', (info.supportedVersions ?? [info.protocolVersion]).join(', ')],
              ['Latency', time(info.connection.latencySeconds)],
              ['Offers', Object.keys(info.capabilities ?? {}).join(', ') || 'nothing']
          ]
        : [];
    fill(
        main,
        h(
            'div.column',
            null,
            h(
                'div.row',
                null,
                h(`span.dot.${connection.state}`),
                h('h1', null, info?.serverInfo?.title ?? info?.serverInfo?.name ?? connection.name ?? connection.about),
                h(
                    `span.tag.${{ open: 'good', connecting: 'warn' }[String(connection.state)] ?? 'bad'}`,
                    null,
                    connection.state
                ),
                info ? h('span.tag.accent', null, `${info.era} era`) : null,
                h('span.grow'),
                connection.place ? again : null,
                close
            ),
            h('p.mono.soft', null, connection.about),
            connection.problem
                ? h(
                      'div.card.bad.column',
                      { role: 'alert' },
                      h('b', null, connection.problem.what ?? String(connection.problem)),
                      connection.problem.remedy ? h('p', null, `Help: ${connection.problem.remedy}`) : null
                  )
                : null,
            facts.length
                ? h(
                      'dl.card.facts',
                      null,
                      facts.flatMap(([name, value]) => [h('dt', null, name), h('dd', null, value)])
                  )
                : null,
            info?.instructions
                ? h('div.card.column', null, h('h2', null, 'Instructions for the model'), markdown(info.instructions))
                : null,
            doctorReport(connection.doctor),
            connection.state === 'open' ? roots(connection) : null,
            connection.needsLogin
                ? h(
                      'div.card.row',
                      null,
                      h('span.grow', null, 'This server requires a login.'),
                      h('a.button.main', { href: `#/${connection.number}/login` }, 'Log in')
                  )
                : null,
            connection.place && connection.state !== 'connecting'
                ? h(
                      'div.row',
                      null,
                      h(
                          'button.button',
                          { type: 'button', onclick: attempt(() => act('doctor', { connection: connection.number })) },
                          'Run the doctor'
                      ),
                      connection.state === 'open'
                          ? h('a.button', { href: `#/${connection.number}/check` }, 'Check and load')
                          : null
                  )
                : null
        )
    );
}
