// @ts-check
/** The page: the bar, the views, and the way between them. */
import { copy, fill, h } from './dom.js';
import { act, follow, open, ticket } from './program.js';
import { connections, hear, listen, questions, reset } from './store.js';
import { catalog, KINDS } from './catalog.js';
import { connectView, overview } from './connect.js';
import { logView, wireView } from './wire.js';
import { checkView } from './check.js';
import { historyList } from './call.js';
import { card } from './question.js';
import { palette } from './palette.js';
import { pretty } from './json.js';

const page = /** @type {HTMLElement} */ (document.getElementById('page'));
const THEME = 'bowline-theme';

/** @param {string | null} choice */
function theme(choice) {
    const isDark = choice ? choice === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
}
theme(localStorage.getItem(THEME));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => theme(localStorage.getItem(THEME)));
const turn = () => {
    const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    localStorage.setItem(THEME, next);
    theme(next);
};

/** Where we are: `#/1/tools/name?query`. */
function route() {
    const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
    const [number, view, ...rest] = path.split('/');
    return { number: Number(number) || 0, view: view ?? (number === 'connect' ? 'connect' : ''), rest: rest.length ? decodeURIComponent(rest.join('/')) : null, query: new URLSearchParams(query ?? ''), first: number };
}

const side = h('nav.side', { 'aria-label': 'Views' });
const main = h('main', { tabindex: '-1', id: 'main' });
const cards = h('div.column', { 'aria-live': 'polite' });
const aside = h('aside.questions', { 'aria-label': 'Questions of servers', hidden: true }, cards);
const state = h('span.soft.small', { role: 'status' });
const commands = palette(() => [
    { label: 'Connect to a server', hint: 'view', run: () => go('#/connect') },
    ...[...connections.values()].flatMap(it => [
        ...views(it).map(([view, label]) => ({ label: `${name(it)}: ${label}`, hint: 'view', run: () => go(`#/${it.number}/${view}`) })),
        ...Object.keys(KINDS).flatMap(list => (it.lists[list]?.items ?? []).map(item => ({ label: KINDS[list].name(item), hint: `${KINDS[list].word} of ${name(it)}`, run: () => go(`#/${it.number}/${list}/${encodeURIComponent(KINDS[list].name(item))}`) }))),
        { label: `Disconnect ${name(it)}`, hint: 'connection', run: () => act('close', { connection: it.number }) }
    ]),
    { label: 'Turn light and dark', hint: 'look', run: turn },
    { label: 'Copy an address for another browser', hint: 'window', run: async () => copy(await ticket()) }
]);

/** @param {string} hash */
const go = hash => { location.hash = hash; };
/** @param {any} it */
const name = it => it.info?.serverInfo?.title ?? it.info?.serverInfo?.name ?? (it.name || it.about);
/** @param {any} it @returns {[string, string, any][]} */
const views = it => it.isTap ? [['wire', 'Messages', it.wire.rows.length]] : [['', 'Overview', ''], ...Object.keys(KINDS).filter(list => it.lists[list]).map(list => /** @type {[string, string, any]} */ ([list, list[0].toUpperCase() + list.slice(1), it.lists[list].items.length])), ['tasks', 'Tasks', it.tasks.size || ''], ['calls', 'Calls', ''], ['wire', 'Messages', it.wire.rows.length], ['logs', 'Logs', ''], ['check', 'Check and load', '']];

let drawnSide = '';
function drawSide() {
    const at = route();
    const link = (/** @type {string} */ href, /** @type {any} */ label, /** @type {any} */ count, /** @type {boolean} */ isHere) => h('a', { href, 'aria-current': isHere ? 'page' : null }, label, count === '' ? null : h('span.count', null, count));
    const list = [...connections.values()];
    const text = JSON.stringify([at.number, at.view, list.map(it => [it.number, it.state, name(it), views(it)])]);
    if (text === drawnSide) return;
    drawnSide = text;
    const here = connections.get(at.number);
    fill(side, link('#/connect', h('b', null, '+ Connect'), '', !here),
        list.length ? h('h2', null, 'Connections') : null,
        list.map(it => link(`#/${it.number}`, [h(`span.dot.${it.state}`), h('span.cut', null, name(it)), h('span.visually-hidden', null, it.state)], it.info ? h('span.tag', null, it.info.era) : '', it === here && at.view === '')),
        here ? [h('h2', null, name(here)), views(here).filter(([view]) => view !== '').map(([view, label, count]) => link(`#/${here.number}/${view}`, label, count, at.view === view))] : null);
}

let drawn = '';
function draw(force = false) {
    drawSide();
    const at = route();
    const here = connections.get(at.number);
    const key = `${location.hash} ${here ? '' : 'gone'}`;
    if (!force && key === drawn) return;
    drawn = key;
    document.title = here ? `${name(here)} – Bowline` : 'Bowline inspector';
    if (!here) return connectView(main, at.query);
    const again = sessionStorage.getItem('bowline-again') ?? undefined;
    sessionStorage.removeItem('bowline-again');
    if (KINDS[at.view]) return catalog(main, here, at.view, at.rest, again);
    main.className = '';
    switch (at.view) {
        case 'wire': return wireView(main, here, at.query);
        case 'logs': return logView(main, here);
        case 'check': return checkView(main, here);
        case 'calls': return fill(main, h('div.column', null, h('h1', null, 'Calls'), historyList(here, call => {
            const params = JSON.parse(call.params);
            sessionStorage.setItem('bowline-again', JSON.stringify(params.arguments ?? {}));
            const list = { 'tools/call': 'tools', 'prompts/get': 'prompts', 'resources/read': 'resources' }[/** @type {string} */ (call.method)] ?? 'tools';
            go(`#/${here.number}/${list}/${encodeURIComponent(params.name ?? params.uri)}`);
        })));
        case 'tasks': return fill(main, h('div.column', null, h('h1', null, 'Tasks'), here.tasks.size ? [...here.tasks.values()].map(it => h('div.card.row', null, h('span.mono.grow', null, it.task), h('span.tag.accent', null, it.status), h('span.soft', null, it.message))) : h('p.empty', null, 'No call has become a task yet.'), here.lists.tasks?.items.length ? pretty(JSON.stringify(here.lists.tasks.items)) : null));
        default: return overview(main, here);
    }
}

/** @type {Map<number, any>} */
const asked = new Map();
function drawQuestions() {
    for (const [key, element] of asked) if (!questions.has(key)) { element.remove(); asked.delete(key); }
    for (const [key, question] of questions) if (!asked.has(key)) { const element = card(question); asked.set(key, element); cards.append(element); }
    aside.hidden = !asked.size;
}

listen(kinds => {
    const at = route();
    drawQuestions();
    const redraws = { '': ['connection', 'doctor'], check: ['check', 'load', 'list'], calls: ['call', 'cancelled'], tasks: ['task', 'list'], logs: ['wire'] }[/** @type {string} */ (at.view)] ?? [];
    const isTyping = main.contains(document.activeElement) && document.activeElement?.matches('input, textarea, select');
    draw(connections.has(at.number) && redraws.some(it => kinds.has(it)) && !(isTyping && at.view === 'check' && !kinds.has('check') && !kinds.has('load')));
    // A program that was given a target shows it at once.
    if (kinds.has('connection') && !at.first && connections.size === 1) go(`#/${[...connections.keys()][0]}`);
});
window.addEventListener('hashchange', () => { draw(); main.focus({ preventScroll: true }); });
window.addEventListener('keydown', event => {
    if ((event.ctrlKey || event.metaKey) && event.key === 'k') { event.preventDefault(); commands.open(); }
    if (event.key === '/' && !/** @type {any} */ (event.target).matches('input, textarea, select')) { const search = /** @type {any} */ (main.querySelector('input[type=search]')); if (search) { event.preventDefault(); search.focus(); } }
});

async function start() {
    fill(page, h('header.bar', null, h('a.brand', { href: '#/', 'aria-label': 'Bowline inspector' }, 'Bowline'), h('span.grow'), state, h('button.button.small', { type: 'button', onclick: commands.open }, 'Commands ', h('span.soft.hide-small', null, 'Ctrl+K')), h('button.button.small', { type: 'button', onclick: turn, 'aria-label': 'Turn light and dark' }, '◐')), h('div.frame', null, side, main, aside));
    try {
        await open();
        draw();
        for (;;) {
            reset();
            drawn = '';
            state.textContent = '';
            try { await follow(hear); } catch (error) { if (/** @type {any} */ (error).status) throw error; }
            state.textContent = 'The program has ended, or is out of reach; trying again…';
            await new Promise(resolve => setTimeout(resolve, 1000));
        }
    } catch (error) {
        fill(page, h('main', null, h('div.card.bad.column', { role: 'alert' }, h('h1', null, 'This page has no key'), h('p', null, /** @type {Error} */ (error).message), h('p.soft', null, 'Each run of ', h('code', null, 'bowline inspect'), ' prints an address that works once.'))));
    }
}
start();
