// @ts-check
/** The checks, and a small load test. */
import { fill, h, many, time } from './dom.js';
import { pretty } from './json.js';
import { act, attempt, said } from './program.js';
import { ticks } from './session.js';
import { calls, listen } from './store.js';
import { callName, subjectOf } from './call.js';

/** @typedef {import('./store.js').Connection} Connection @typedef {import('./store.js').Call} Call */

const SVG = 'http://www.w3.org/2000/svg';

/** How many times stand beside the plot, about, and which percentiles below it. */
const MARKS = 4;
const PERCENTILES = [50, 90, 99];

/** How long calls took, from the fastest to the slowest of a hundred. @param {number[]} plot milliseconds */
function curve(plot) {
    const top = Math.max(...plot, 0.001) * 1.05;
    const svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('viewBox', '0 0 100 100');
    svg.setAttribute('preserveAspectRatio', 'none');
    svg.setAttribute('class', 'plot');
    const draw = (/** @type {string} */ name, /** @type {Record<string, unknown>} */ attributes) => {
        const it = document.createElementNS(SVG, name);
        for (const [name, value] of Object.entries(attributes)) it.setAttribute(name, String(value));
        svg.append(it);
    };
    const mark = (/** @type {string} */ tag, /** @type {number} */ share, /** @type {string} */ text) => {
        const it = h(tag, null, text);
        it.style.setProperty('--share', String(share));
        return it;
    };
    const times = ticks(0, top, MARKS);
    for (const { at } of times)
        draw('line', { x1: 0, x2: 100, y1: 100 - (at / top) * 100, y2: 100 - (at / top) * 100 });
    for (const x of PERCENTILES) draw('line', { x1: x, x2: x, y1: 0, y2: 100 });
    draw('polyline', { points: plot.map((it, at) => `${at},${100 - (it / top) * 100}`).join(' ') });
    const words = PERCENTILES.map(it => `p${it} ${time((plot[it] ?? 0) / 1000)}`).join(', ');
    return h(
        'div.chart',
        { role: 'img', 'aria-label': `Latency by percentile: ${words}` },
        svg,
        times.map(it => mark('span.y', it.at / top, `${it.text} ms`)),
        PERCENTILES.map(it => mark('span.x', it / 100, `p${it}`))
    );
}

/**
 * The tools that a finding names: quoted, as the checks do, or as a word of its own. @param {Connection} connection
 * @param {any} finding
 */
function namesIn(connection, finding) {
    const said = (finding.problems ?? []).join('\n');
    const isNamed = (/** @type {string} */ name) => {
        for (let at = said.indexOf(name); at >= 0; at = said.indexOf(name, at + 1)) {
            const [before, after] = [said[at - 1] ?? ' ', said[at + name.length] ?? ' '];
            if (
                !/[\w./-]/.test(before) &&
                !/[\w/-]/.test(after) &&
                !(after === '.' && /\w/.test(said[at + name.length + 1] ?? ' '))
            )
                return true;
        }
        return false;
    };
    return (connection.lists.tools?.items ?? [])
        .map(it => it.name)
        .filter(it => typeof it === 'string' && it && isNamed(it))
        .slice(0, 5);
}

/** @param {any} finding */
function evidence(finding) {
    const all = finding.evidence ?? [];
    if (!all.length) return null;
    return h(
        'details',
        null,
        h('summary.small', null, many(all.length, 'message')),
        all.map((/** @type {any} */ it) => pretty(JSON.stringify(it)))
    );
}

/** @param {Connection} connection */
function report(connection) {
    const { check } = connection;
    if (!check)
        return h(
            'p.soft',
            null,
            'Tests the server against the specification and what well-known clients need. ',
            'Only tools that read are called.'
        );
    if (check.state === 'running')
        return h(
            'div',
            null,
            h('p', null, `${many(check.done, 'check')} done`),
            h('progress', { 'aria-label': 'checking' })
        );
    if (check.problem) return h('p', { role: 'alert' }, check.problem.what);
    const findings = (check.report?.results ?? []).filter(
        (/** @type {any} */ it) => !['pass', 'skipped'].includes(it.outcome)
    );
    const row = (/** @type {any} */ it) =>
        h(
            'tr',
            null,
            h('td', null, h(`span.tag.${it.outcome === 'fail' ? 'bad' : 'warn'}`, null, it.outcome)),
            h('td.mono', null, `${it.id} (${it.severity})`),
            h(
                'td',
                null,
                it.says,
                (it.problems ?? []).map((/** @type {string} */ one) => h('div.soft.small', null, one)),
                it.remedy ? h('div.small', null, `Help: ${it.remedy}`) : null,
                evidence(it)
            ),
            h(
                'td',
                null,
                namesIn(connection, it).map(name =>
                    h('div', null, h('a', { href: `#/${connection.number}/tools/${encodeURIComponent(name)}` }, name))
                )
            )
        );
    const head = h(
        'tr',
        null,
        ['Verdict', 'Check', 'What was found', 'About'].map(it => h('th', null, it))
    );
    return h(
        'div.column',
        null,
        h(
            'p',
            null,
            h(
                `span.tag.${findings.length ? 'warn' : 'good'}`,
                null,
                findings.length ? many(findings.length, 'finding') : 'nothing to fix'
            )
        ),
        findings.length
            ? h(
                  'div.tablebox',
                  { tabindex: '0' },
                  h('table', null, h('thead', null, head), h('tbody', null, findings.map(row)))
              )
            : null
    );
}

/** @param {Connection} connection */
function checkPart(connection) {
    const body = h('div.column');
    const told = h('p.small', { role: 'alert' });
    const start = h(
        'button.button.main',
        {
            type: 'button',
            onclick: () =>
                act('check', { connection: connection.number }).catch(error => {
                    told.textContent = said(error);
                })
        },
        'Run all checks'
    );
    /** @type {any} */
    let seen;
    const draw = () => {
        if (seen === connection.check && body.childElementCount) return;
        seen = connection.check;
        start.disabled = seen?.state === 'running';
        fill(body, report(connection));
    };
    draw();
    return {
        draw,
        element: h(
            'section.card.column',
            { 'data-part': 'check' },
            h('div.row', null, h('h2.grow', null, 'Check'), start),
            told,
            body
        )
    };
}

/** @typedef {{method: string, params?: string, isSafe: boolean}} Subject */

/** How many calls are offered to a load test. */
const MOST_SUBJECTS = 50;

/** Whether a call only reads, as far as the server says so. @param {Connection} connection @param {Call} call */
function reads(connection, { method, params }) {
    if (method !== 'tools/call') return /(^ping|\/(list|read|get|complete|discover))$/.test(method);
    const name = subjectOf(params);
    const tools = connection.lists.tools?.items ?? [];
    return tools.find(it => it.name === name)?.annotations?.readOnlyHint === true;
}

/** What a load test can repeat: the calls that have succeeded, the latest first. @param {Connection} connection */
function subjectsOf(connection) {
    const method = connection.info?.era === 'modern' ? 'server/discover' : 'ping';
    /** @type {Map<string, Subject>} */
    const found = new Map();
    for (const it of [...calls.values()].reverse()) {
        if (it.connection !== connection.number || it.state !== 'done' || it.method === 'tasks/result') continue;
        const { method, params } = it;
        const isSafe = reads(connection, it);
        if (found.size < MOST_SUBJECTS) found.set(`${method} ${params}`, { method, params, isSafe });
    }
    return found.set('', { method, isSafe: true });
}

/** What to repeat: what only reads, unless something else is chosen. @param {Connection} connection */
function chooser(connection) {
    const menu = h('select', { onchange: () => (chosen = menu.value) });
    /** @type {string | null} */
    let chosen = null;
    let subjects = subjectsOf(connection);
    let drawn = '';
    const draw = () => {
        subjects = subjectsOf(connection);
        const keys = [...subjects.keys()];
        const text = keys.join('\n');
        if (text === drawn) return;
        drawn = text;
        const words = (/** @type {string} */ key) => key || `${subjects.get('')?.method}: is the server there?`;
        fill(
            menu,
            keys.map(it => h('option', { value: it }, words(it).slice(0, 200)))
        );
        menu.value = keys.find(it => it === chosen) ?? keys.find(it => subjects.get(it)?.isSafe) ?? '';
    };
    draw();
    return {
        element: h('label.small', null, 'Call to repeat', menu),
        draw,
        chosen: () => /** @type {Subject} */ (subjects.get(menu.value) ?? subjects.get(''))
    };
}

/** @param {any} load */
const latency = load => ['p50', 'p90', 'p99', 'max'].map(it => `${it} ${time(load[it] / 1000)}`).join(', ');

/** @param {Connection} connection */
function loadPart(connection) {
    const number = (/** @type {string} */ label, /** @type {string} */ value) =>
        h('label.small', null, label, h('input', { type: 'number', min: '0', value, name: label }));
    const inputs = [number('Calls', '200'), number('At once', '8'), number('Per second (0: no limit)', '0')];
    const subject = chooser(connection);
    const told = h('p.small', { role: 'alert' });
    const body = h('div.column');
    const sure = h('div.card.bad.column', { role: 'alert', hidden: true });
    const wanted = () => inputs.map(it => Number(it.querySelector('input').value));
    const start = async (/** @type {Subject} */ { method, params }) => {
        const [total, atOnce, rate] = wanted();
        told.textContent = '';
        sure.hidden = true;
        try {
            await act(
                'load',
                {
                    connection: connection.number,
                    call: `load-${callName()}`,
                    method,
                    calls: total || 1,
                    atOnce: atOnce || 1,
                    ...(rate ? { perSecond: rate } : {})
                },
                params === undefined ? {} : { params }
            );
        } catch (error) {
            told.textContent = said(error);
        }
    };
    /** What may change something is repeated only when its person has agreed. */
    const ask = () => {
        const of = subject.chosen();
        if (of.isSafe) return start(of);
        const button = (/** @type {string} */ label, /** @type {() => void} */ onclick) =>
            h('button.button', { type: 'button', onclick }, label);
        fill(
            sure,
            h(
                'p',
                null,
                'The server does not say that this call only reads: ',
                h('code', null, subjectOf(of.params ?? '')),
                '.'
            ),
            h(
                'div.row',
                null,
                button(`Call it ${many(wanted()[0] || 1, 'time')}`, () => start(of)),
                button('Do not', () => (sure.hidden = true))
            )
        );
        sure.hidden = false;
    };
    const begin = h('button.button.main', { type: 'button', onclick: ask }, 'Start');
    const stop = h(
        'button.button',
        { type: 'button', hidden: true, onclick: attempt(() => act('cancel', { call: connection.load.call })) },
        'Stop'
    );
    const draw = () => {
        const { load } = connection;
        subject.draw();
        begin.disabled = load?.state === 'running';
        stop.hidden = load?.state !== 'running';
        if (!load) return;
        const errors = Object.entries(load.errors ?? {})
            .map(([why, many]) => `${many} × ${why}`)
            .join('; ');
        const facts = [
            ['State', load.state],
            ['Calls', load.done],
            ['Rate', `${load.perSecond.toLocaleString('en', { maximumFractionDigits: 1 })} calls per second`],
            ['Latency', load.done ? latency(load) : '–'],
            ['Counted from', load.from === 'due' ? 'when each call was due' : 'when each call was sent'],
            ['Errors', errors || 'none']
        ];
        fill(
            body,
            h(
                'dl.facts',
                null,
                facts.flatMap(([name, value]) => [h('dt', null, name), h('dd', null, value)])
            ),
            curve(load.plot)
        );
    };
    draw();
    return {
        draw,
        element: h(
            'section.card.column',
            { 'data-part': 'load' },
            h('h2', null, 'Load'),
            subject.element,
            h('div.row.low', null, inputs, begin, stop),
            sure,
            told,
            body
        )
    };
}

/** @param {HTMLElement} main @param {Connection} connection */
export function checkView(main, connection) {
    const [check, load] = [checkPart(connection), loadPart(connection)];
    main.className = '';
    fill(main, h('div.column', null, h('h1', null, 'Check and load'), check.element, load.element));
    const stop = listen(kinds => {
        if (!check.element.isConnected) return stop();
        if (kinds.has('check') || kinds.has('list')) check.draw();
        if (['load', 'call', 'list'].some(it => kinds.has(it))) load.draw();
    });
}
