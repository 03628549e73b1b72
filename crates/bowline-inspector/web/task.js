// @ts-check
/** Tasks: calls that go on after their request, listed, looked at, waited for, cancelled. */
import { fill, h, keyed } from './dom.js';
import { act, said } from './program.js';
import { calls, listen, progress } from './store.js';
import { callName, outcomeOf, subjectOf } from './call.js';

/**
 * @typedef {import('./store.js').Connection} Connection
 * @typedef {{id: string, status: string, message?: string, created?: string}} Task
 */

/** Those that calls have become, and those that the server lists. @param {Connection} connection @returns {Task[]} */
function tasksOf(connection) {
    /** @type {Map<string, Task>} */
    const all = new Map();
    for (const it of connection.lists.tasks?.items ?? [])
        all.set(it.taskId, {
            id: it.taskId,
            status: it.status,
            message: it.statusMessage,
            created: it.createdAt
        });
    for (const it of connection.tasks.values())
        all.set(it.task, { ...all.get(it.task), id: it.task, status: it.status, message: it.message });
    return [...all.values()].reverse();
}

/** @param {string} status */
const kind = status =>
    ({ completed: 'good', failed: 'bad', cancelled: 'warn', input_required: 'warn' })[status] ?? 'accent';

/** @param {HTMLElement} main @param {Connection} connection */
export function taskView(main, connection) {
    const { number } = connection;
    const told = h('p.small', { role: 'alert' });
    const list = h('div.column');
    const empty = h('p.empty', null, 'No call has become a task yet.');
    const attempt = async (/** @type {() => Promise<unknown>} */ work) => {
        told.textContent = '';
        try {
            await work();
        } catch (error) {
            told.textContent = said(error);
        }
    };
    const ask = (/** @type {string} */ method, /** @type {string} */ id) => () =>
        attempt(() => act('call', { connection: number, call: callName(), method, params: { taskId: id } }));
    const resume = (/** @type {string} */ id) => () =>
        attempt(() => act('resume', { connection: number, call: callName(), task: id }));
    const button = (/** @type {string} */ label, /** @type {() => void} */ onclick) =>
        h('button.button.small', { type: 'button', onclick }, label);
    /** The latest outcome of a task. @param {string} id */
    const latest = id =>
        [...calls.values()]
            .filter(it => it.connection === number && it.method.startsWith('tasks/') && subjectOf(it.params) === id)
            .pop();
    const paint = (/** @type {HTMLElement} */ element, /** @type {Task} */ task) => {
        const call = latest(task.id);
        const at = call ? progress.get(call.call) : undefined;
        const state = JSON.stringify([task, call?.call, call?.state, at]);
        if (element.dataset.state === state) return;
        element.dataset.state = state;
        const [head, body] = element.children;
        const [words] = head.children;
        fill(
            words,
            h('span.mono.cut', null, task.id),
            ' ',
            h(`span.tag.${kind(task.status)}`, null, task.status ?? 'unknown'),
            ' ',
            h('span.soft', null, task.message)
        );
        fill(body, call ? [h('p.soft.small', null, call.method), outcomeOf(call, at)] : null);
    };
    const make = (/** @type {Task} */ task) => {
        const { id } = task;
        const buttons = [
            button('Get', ask('tasks/get', id)),
            button('Wait for the result', resume(id)),
            button('Ask to cancel', ask('tasks/cancel', id))
        ];
        const element = h(
            'div.card.column',
            { 'data-task': id },
            h('div.row', null, h('div.grow'), buttons),
            h('div.column')
        );
        paint(element, task);
        return element;
    };
    const known = h('input', { type: 'text', placeholder: 'The id of a task', 'aria-label': 'The id of a task' });
    const add = (/** @type {Event} */ event) => {
        event.preventDefault();
        const id = known.value.trim();
        if (!id) return;
        connection.tasks.set(id, { task: id, status: 'unknown' });
        known.value = '';
        draw();
        ask('tasks/get', id)();
    };
    const draw = () => {
        const all = tasksOf(connection);
        empty.hidden = all.length > 0;
        keyed(list, all, it => it.id, make, paint);
    };
    const refresh = connection.lists.tasks
        ? button('Refresh', () => attempt(() => act('refresh', { connection: number, list: 'tasks' })))
        : null;
    main.className = '';
    fill(
        main,
        h(
            'div.column',
            null,
            h('div.row', null, h('h1.grow', null, 'Tasks'), refresh),
            h(
                'p.soft',
                null,
                'Calls that go on after their request. Waiting for a result also answers what the task asks.'
            ),
            h(
                'form.row',
                { onsubmit: add },
                h('div.grow', null, known),
                h('button.button', { type: 'submit' }, 'Look at it')
            ),
            told,
            empty,
            list
        )
    );
    draw();
    const end = listen(kinds => {
        if (!list.isConnected) return end();
        if (['task', 'call', 'list', 'progress'].some(it => kinds.has(it))) draw();
    });
}
