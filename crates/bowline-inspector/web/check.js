// @ts-check
/** The checks, and a small load test. */
import { fill, h } from './dom.js';
import { member } from './json.js';
import { act } from './program.js';
import { calls } from './store.js';

const SVG = 'http://www.w3.org/2000/svg';

/** @param {number[]} plot */
function curve(plot) {
    const svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('viewBox', '0 0 100 100');
    svg.setAttribute('preserveAspectRatio', 'none');
    svg.setAttribute('class', 'plot');
    svg.setAttribute('role', 'img');
    svg.setAttribute('aria-label', 'Latency by percentile');
    const top = Math.max(...plot, 0.001);
    const line = document.createElementNS(SVG, 'polyline');
    line.setAttribute('points', plot.map((it, at) => `${at},${100 - (it / top) * 96}`).join(' '));
    svg.append(line);
    return svg;
}

/** @param {any} connection */
function checkPart(connection) {
    const { check } = connection;
    const findings = (check?.report?.results ?? []).filter((/** @type {any} */ it) => !['pass', 'skipped'].includes(it.outcome));
    const words = (/** @type {any} */ it) => (it.problems ?? []).join(' ');
    const about = (/** @type {any} */ it) => {
        const tool = (connection.lists.tools?.items ?? []).find((/** @type {any} */ one) => words(it).includes(one.name));
        return tool ? h('a', { href: `#/${connection.number}/tools/${encodeURIComponent(tool.name)}` }, tool.name) : null;
    };
    const body = !check ? h('p.soft', null, 'Tests the server against the specification and what well-known clients need. Only tools that read are called.')
        : check.state === 'running' ? h('div', null, h('p', null, `${check.done} checks done`), h('progress', { 'aria-label': 'checking' }))
        : check.problem ? h('p', { role: 'alert' }, check.problem.what)
        : h('div.column', null, h('p', null, h(`span.tag.${findings.length ? 'warn' : 'good'}`, null, findings.length ? `${findings.length} findings` : 'nothing to fix')),
            h('div.tablebox', { tabindex: '0' }, h('table', null, h('thead', null, h('tr', null, ['Verdict', 'Check', 'What was found', 'About'].map(it => h('th', null, it)))), h('tbody', null, findings.map((/** @type {any} */ it) => h('tr', null, h('td', null, h(`span.tag.${it.outcome === 'fail' ? 'bad' : 'warn'}`, null, it.outcome)), h('td.mono', null, `${it.id} (${it.severity})`), h('td', null, it.says, (it.problems ?? []).map((/** @type {string} */ one) => h('div.soft.small', null, one)), it.remedy ? h('div.small', null, `Help: ${it.remedy}`) : null), h('td', null, about(it))))))));
    return h('section.card.column', { 'data-part': 'check' }, h('div.row', null, h('h2.grow', null, 'Check'), h('button.button.main', { type: 'button', disabled: check?.state === 'running', onclick: () => act('check', { connection: connection.number }) }, 'Run all checks')), body);
}

/** @param {any} connection */
function loadPart(connection) {
    const { load } = connection;
    const last = [...calls.values()].filter(it => it.connection === connection.number && it.state === 'done').pop();
    const number = (/** @type {string} */ label, /** @type {string} */ value) => h('label.small', null, label, h('input', { type: 'number', min: '0', value, name: label }));
    const inputs = [number('Calls', '200'), number('At once', '8'), number('Per second (0: no limit)', '0')];
    const subject = last ? `${last.method} ${(member(last.params, 'name') ?? member(last.params, 'uri') ?? '').replace(/"/g, '')}` : 'ping';
    const start = () => {
        const [total, atOnce, rate] = inputs.map(it => Number(it.querySelector('input').value));
        act('load', { connection: connection.number, call: 'load', method: last?.method ?? (connection.info?.era === 'modern' ? 'server/discover' : 'ping'), calls: total || 1, atOnce: atOnce || 1, ...(rate ? { perSecond: rate } : {}) }, last ? { params: last.params } : {});
    };
    const errors = Object.entries(load?.errors ?? {});
    return h('section.card.column', { 'data-part': 'load' }, h('h2', null, 'Load'), h('p.soft', null, `Repeats the latest successful call: ${subject}.`), h('div.row', null, inputs, h('button.button.main', { type: 'button', onclick: start }, 'Start'), load?.state === 'running' ? h('button.button', { type: 'button', onclick: () => act('cancel', { call: 'load' }) }, 'Stop') : null),
        load ? h('div.column', null, h('dl.facts', null, [['Calls', load.done], ['Per second', load.perSecond.toFixed(1)], ...['p50', 'p90', 'p99', 'max'].map(it => [it, `${load[it].toFixed(2)} ms`]), ['Errors', errors.map(([why, many]) => `${many} × ${why}`).join('; ') || 'none']].flatMap(([name, value]) => [h('dt', null, name), h('dd', null, value)])), curve(load.plot)) : null);
}

/** @param {HTMLElement} main @param {any} connection */
export function checkView(main, connection) {
    main.className = '';
    fill(main, h('div.column', null, h('h1', null, 'Check and load'), checkPart(connection), loadPart(connection)));
}
