// @ts-check
/** The page: the bar, the views, and the way between them. */
import { copy, fill, h, keyed } from './dom.js';
import { act, attempt, follow, hasTicket, open, Problem, said, ticket } from './program.js';
import { connections, feed, hear, listen, nameOf, questions, reset } from './store.js';
import { leave } from './app.js';
import { catalog, itemsOf, KINDS } from './catalog.js';
import { connectView, overview } from './connect.js';
import { logView } from './logs.js';
import { wireView } from './wire.js';
import { checkView } from './check.js';
import { historyView, subjectOf } from './call.js';
import { loginView } from './login.js';
import { taskView } from './task.js';
import { recordedView } from './recorded.js';
import { rulesView } from './rules.js';
import { card } from './question.js';
import { palette } from './palette.js';
import { member } from './json.js';

/** @typedef {import('./store.js').Connection} Connection */

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
    const [first, view, ...rest] = path.split('/');
    let name = rest.length ? rest.join('/') : null;
    try {
        name = name && decodeURIComponent(name);
    } catch {
        // A percent sign that stands for itself.
    }
    return { number: Number(first) || 0, view: view ?? '', rest: name, query: new URLSearchParams(query ?? ''), first };
}

const places = h('div.places');
const views = h('div.places');
const heading = h('h2', { hidden: true });
const here = h('h2.cut', { hidden: true });
const side = h('nav.side', { 'aria-label': 'Views' }, heading, places, here, views);
const main = h('main', { tabindex: '-1', id: 'main' });
const cards = h('div.column', { 'aria-live': 'polite' });
const aside = h('aside.questions', { 'aria-label': 'Questions of servers', hidden: true }, cards);
const state = h('span.soft.small', { role: 'status' });
/** @param {string} hash */
const go = hash => {
    location.hash = hash;
};

/** What a connection has to show. @param {Connection} it @returns {[string, string, number | ''][]} */
function viewsOf(it) {
    const messages = /** @type {[string, string, number | '']} */ ([
        'wire',
        'Messages',
        it.isFile ? '' : it.wire.rows.length
    ]);
    if (it.isTap || it.isFile)
        return [messages, ...(it.isTap ? [/** @type {[string, string, '']} */ (['logs', 'Logs', ''])] : [])];
    const named = Object.keys(KINDS).flatMap(list => {
        const items = itemsOf(it, list);
        const title = list[0].toUpperCase() + list.slice(1);
        return items ? [/** @type {[string, string, number]} */ ([list, title, items.length])] : [];
    });
    const isUrl = /^https?:/.test(it.about);
    return [
        ['', 'Overview', ''],
        ...named,
        ['tasks', 'Tasks', it.tasks.size || ''],
        ['calls', 'Calls', ''],
        messages,
        ['logs', 'Logs', ''],
        ['check', 'Check and load', ''],
        ...(isUrl ? [/** @type {[string, string, '']} */ (['login', 'Login', ''])] : [])
    ];
}

const commands = palette(() => [
    { label: 'Connect to a server', hint: 'view', run: () => go('#/connect') },
    { label: 'Answering rules for questions of servers', hint: 'view', run: () => go('#/rules') },
    { label: 'Sessions: open, compare, replay, export', hint: 'view', run: () => go('#/sessions') },
    ...[...connections.values()].flatMap(it => [
        ...viewsOf(it).map(([view, label]) => ({
            label: `${nameOf(it)}: ${label}`,
            hint: 'view',
            run: () => go(`#/${it.number}/${view}`)
        })),
        ...Object.keys(KINDS).flatMap(list =>
            (itemsOf(it, list) ?? []).map(item => ({
                label: KINDS[list].name(item),
                hint: `${KINDS[list].word} of ${nameOf(it)}`,
                run: () => go(`#/${it.number}/${list}/${encodeURIComponent(KINDS[list].name(item))}`)
            }))
        ),
        {
            label: `Disconnect ${nameOf(it)}`,
            hint: 'connection',
            run: attempt(() => act('close', { connection: it.number }))
        }
    ]),
    { label: 'Turn light and dark', hint: 'look', run: turn },
    { label: 'Copy an address for another browser', hint: 'window', run: attempt(async () => copy(await ticket())) }
]);

/** @typedef {{href: string, label: string, count: number | '', tag: string, dot: string, isHere: boolean}} Link */
/** @param {Link} it */
const makeLink = it => {
    const element = h('a', { href: it.href });
    paintLink(element, it);
    return element;
};
/** @param {HTMLElement} element @param {Link} it */
function paintLink(element, it) {
    const text = JSON.stringify(it);
    if (element.dataset.text === text) return;
    element.dataset.text = text;
    if (it.isHere) element.setAttribute('aria-current', 'page');
    else element.removeAttribute('aria-current');
    const dot = it.dot ? [h(`span.dot.${it.dot}`), h('span.visually-hidden', null, it.dot)] : null;
    fill(
        element,
        dot,
        h('span.cut', null, it.label),
        it.tag ? h('span.tag', null, it.tag) : null,
        it.count === '' ? null : h('span.count', null, it.count)
    );
}

/** Views that belong to no connection, besides the form that connects. */
const OTHERS = ['sessions', 'rules'];
let drawnSide = '';
function drawSide() {
    const at = route();
    const list = [...connections.values()];
    const of = connections.get(at.number);
    /** @type {Link[]} */
    const all = [
        {
            href: '#/connect',
            label: '+ Connect',
            count: '',
            tag: '',
            dot: '',
            isHere: !of && !OTHERS.includes(at.first)
        },
        { href: '#/sessions', label: 'Sessions', count: '', tag: '', dot: '', isHere: at.first === 'sessions' },
        { href: '#/rules', label: 'Answering rules', count: '', tag: '', dot: '', isHere: at.first === 'rules' },
        ...list.map(it => ({
            href: `#/${it.number}${it.isTap || it.isFile ? '/wire' : ''}`,
            label: nameOf(it),
            count: /** @type {''} */ (''),
            tag: it.info?.era ?? (it.isFile ? 'file' : it.isTap ? 'tap' : ''),
            dot: it.state,
            isHere: it === of && at.view === ''
        }))
    ];
    /** @type {Link[]} */
    const own = of
        ? viewsOf(of)
              .filter(([view]) => view !== '')
              .map(([view, label, count]) => ({
                  href: `#/${of.number}/${view}`,
                  label,
                  count,
                  tag: '',
                  dot: '',
                  isHere: at.view === view
              }))
        : [];
    const text = JSON.stringify([all, own]);
    if (text === drawnSide) return;
    drawnSide = text;
    keyed(places, all, it => it.href, makeLink, paintLink);
    keyed(views, own, it => it.href, makeLink, paintLink);
    here.hidden = !of;
    here.textContent = of ? nameOf(of) : '';
}

/** A call that is to be edited, exactly as it was. */
const AGAIN = 'bowline-again';
/** Opens what was called, if there is such a thing; returns whether. @param {import('./store.js').Call} call */
function editAgain(call) {
    const list = { 'tools/call': 'tools', 'prompts/get': 'prompts', 'resources/read': 'resources' }[call.method];
    const of = connections.get(call.connection);
    const subject = subjectOf(call.params);
    if (!list || !of || !itemsOf(of, list)?.some(it => KINDS[list].name(it) === subject)) return false;
    sessionStorage.setItem(AGAIN, member(call.params, 'arguments') ?? '{}');
    go(`#/${call.connection}/${list}/${encodeURIComponent(subject)}`);
    return true;
}

let drawn = '';
/** Whether apps are taking their leave: their view stays until they have. */
let isLeaving = false;
function draw(force = false) {
    drawSide();
    const at = route();
    const of = connections.get(at.number);
    // Where a link leads is known only when everything has been read.
    if (isLeaving || (!of && !feed.isCurrent)) return;
    const key = `${location.hash} ${of ? '' : 'gone'}`;
    if (!force && key === drawn) return;
    drawn = key;
    document.title = of ? `${nameOf(of)} – Bowline` : 'Bowline inspector';
    try {
        show(at, of);
    } catch (error) {
        console.error(error);
        const what = h('b', null, 'This view cannot be shown.');
        fill(main, h('div.card.bad', { role: 'alert' }, what, h('p', null, said(error))));
    }
}

/** @param {ReturnType<typeof route>} at @param {Connection | undefined} of */
function show(at, of) {
    if (!of && at.first === 'rules') return rulesView(main);
    if (!of) return at.first === 'sessions' ? recordedView(main, at.query) : connectView(main, at.query);
    if (of.isFile) return wireView(main, of, at.query);
    const again = sessionStorage.getItem(AGAIN);
    sessionStorage.removeItem(AGAIN);
    if (KINDS[at.view])
        return catalog(main, of, at.view, at.rest, again === null ? undefined : { mode: 'form', text: again });
    switch (at.view) {
        case 'wire':
            return wireView(main, of, at.query);
        case 'logs':
            return logView(main, of);
        case 'check':
            return checkView(main, of);
        case 'calls':
            return historyView(main, of, editAgain);
        case 'tasks':
            return taskView(main, of);
        case 'login':
            return loginView(main, of);
        default:
            return overview(main, of);
    }
}

function drawQuestions() {
    keyed(
        cards,
        questions,
        ([number]) => number,
        ([, question]) => card(question)
    );
    aside.hidden = !questions.size;
}

listen(kinds => {
    const at = route();
    drawQuestions();
    const isOverview = connections.has(at.number) && at.view === '';
    draw(isOverview && ['connection', 'doctor'].some(kind => kinds.has(`${kind}/${at.number}`)));
    // A program that was given a target shows it at once.
    if (kinds.has('connection') && !at.first && connections.size === 1) go(`#/${[...connections.keys()][0]}`);
});
window.addEventListener('hashchange', async () => {
    // The address of another run, pasted over this one.
    if (hasTicket(location.hash)) await open().then(() => location.reload(), refused);
    isLeaving = true;
    await leave();
    isLeaving = false;
    draw();
    main.focus({ preventScroll: true });
});
window.addEventListener('keydown', event => {
    if ((event.ctrlKey || event.metaKey) && event.key === 'k') {
        event.preventDefault();
        commands.open();
    }
    const isTyping = event.target instanceof Element && event.target.matches('input, textarea, select');
    const search = main.querySelector('input[type=search]');
    if (event.key === '/' && !isTyping && search instanceof HTMLElement) {
        event.preventDefault();
        search.focus();
    }
});

/** @param {unknown} error */
function refused(error) {
    const what = h('h1', null, 'This page has no key');
    const how = h(
        'p.soft',
        null,
        'Each run of ',
        h('code', null, 'bowline inspect'),
        ' prints an address that works once. Open it, or paste it here over the address of this page.'
    );
    fill(page, h('main', null, h('div.card.bad.column', { role: 'alert' }, what, h('p', null, said(error)), how)));
}

async function start() {
    fill(
        page,
        h(
            'header.bar',
            null,
            h('a.brand', { href: '#/', 'aria-label': 'Bowline inspector' }, 'Bowline'),
            h('span.grow'),
            state,
            h(
                'button.button.small',
                { type: 'button', onclick: commands.open },
                'Commands ',
                h('span.soft.hide-small', null, 'Ctrl+K')
            ),
            h('button.button.small', { type: 'button', onclick: turn, 'aria-label': 'Turn light and dark' }, '◐')
        ),
        h('div.frame', null, side, main, aside)
    );
    try {
        await open();
        await live();
    } catch (error) {
        refused(error);
    }
}

/**
 * Hears the program for as long as this page has a key. A page that nobody sees does not: a browser has six connections
 * to a host, and each page that listens takes one.
 */
async function live() {
    let position = 0;
    for (;;) {
        const seen = new AbortController();
        const turned = () => document.hidden && seen.abort();
        document.addEventListener('visibilitychange', turned);
        try {
            await shown();
            const from = position;
            const read = (/** @type {any[]} */ events, /** @type {number} */ after) => {
                // What was forgotten meanwhile may be among what was dropped: only the beginning tells.
                if (from && events.some(it => it.event === 'dropped')) throw new StartOver();
                state.textContent = '';
                position = after;
                hear(events);
            };
            await follow(from, read, seen.signal);
        } catch (error) {
            if (error instanceof Problem && error.status) throw error;
            if (error instanceof StartOver) {
                reset();
                [position, drawn] = [0, ''];
                continue;
            }
        } finally {
            document.removeEventListener('visibilitychange', turned);
            seen.abort();
        }
        if (document.hidden) continue;
        state.textContent = 'The program has ended, or is out of reach; trying again…';
        await new Promise(resolve => setTimeout(resolve, 1000));
    }
}

class StartOver extends Error {}

/** Waits until somebody sees this page. */
async function shown() {
    while (document.hidden)
        await new Promise(resolve => document.addEventListener('visibilitychange', resolve, { once: true }));
}
start();
