// @ts-check
/** Everything that is known, folded from the feed; views are told what changed. Bounded: the oldest calls go first. */
import { member, textMember } from './json.js';
import { Wire } from './session.js';

/**
 * @typedef {{what: string, remedy?: string}} Trouble
 * @typedef {{number: number, step: string, method: string, url: string, headers: [string, string][], body: string,
 *   answer: {status: number, headers: [string, string][], body: string} | null, problem: string | null}} AuthStep
 * @typedef {{state: string, url?: string, isLoggedIn?: boolean,
 *   claims?: Record<string, any> | null, problem?: Trouble}} LoginState
 * @typedef {{number: number, state: string, about: string, name: string, place?: any, info?: any, problem?: Trouble,
 *   isTap?: boolean, isFile?: boolean, lists: Record<string, {items: any[], problem?: string}>, doctor?: any,
 *   check?: any, load?: any, replay?: any, tasks: Map<string, any>,
 *   target?: string, revision?: string, needsLogin?: boolean, login?: LoginState, auth: AuthStep[], wire: Wire}} Connection
 * @typedef {{call: string, connection: number, method: string, params: string, state: string, result?: string,
 *   isError?: boolean, mismatch?: string | null, took?: number, at?: number, problem?: Trouble, error?: any}} Call
 * @typedef {{call: string, progress: number, total?: number, message?: string}} Progress
 */

/** The most calls, and characters of their results, that are remembered. */
export const MOST_CALLS = 2000;
export const MOST_CHARACTERS = 64 << 20;

/** @type {Map<number, Connection>} */
export const connections = new Map();
/** @type {Map<number, any>} */
export const questions = new Map();
/** @type {Map<string, Call>} */
export const calls = new Map();
/** Calls that somebody waits for: they stay until then. @type {Set<string>} */
export const awaited = new Set();
/** @type {Map<string, Progress>} */
export const progress = new Map();
/** What the program says of itself, and whether it has forgotten something before this page read it. */
export const program = { version: '', rules: '', hasDropped: false };
/** Whether everything that had happened has been read. */
export const feed = { isCurrent: false };
/** Connections that are gone: what comes late about them is not shown. @type {Set<number>} */
const gone = new Set();
let characters = 0;

/** The clock of the page, in seconds. */
export const clock = () => performance.now() / 1000;

/** @type {Set<(kinds: Set<string>) => void>} */
export const listeners = new Set();
/** @param {(kinds: Set<string>) => void} listener */
export function listen(listener) {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

/** @param {number} number @returns {Connection} */
export function connection(number) {
    let found = connections.get(number);
    if (!found) {
        found = {
            number,
            state: 'connecting',
            about: `connection ${number}`,
            name: '',
            lists: {},
            tasks: new Map(),
            auth: [],
            wire: new Wire()
        };
        connections.set(number, found);
    }
    return found;
}

/** Starts over, for a feed that is read from its beginning. */
export function reset() {
    for (const map of [connections, questions, calls, progress]) map.clear();
    gone.clear();
    characters = 0;
    program.hasDropped = false;
    feed.isCurrent = false;
}

/**
 * Views hear the kinds of the events, and each with its connection, as in `doctor/1`. What throws is a bug here, and
 * stops nothing else. @param {any[]} events
 */
export function hear(events) {
    const kinds = new Set();
    for (const event of events) {
        if (gone.has(event.connection)) continue;
        kinds.add(event.event).add(`${event.event}/${event.connection}`);
        guarded(() => fold(event));
    }
    for (const listener of listeners) guarded(() => listener(kinds));
}

/** @param {() => void} run */
function guarded(run) {
    try {
        run();
    } catch (error) {
        console.error(error);
    }
}

/** @param {any} event */
function fold(event) {
    const of = () => connection(event.connection);
    switch (event.event) {
        case 'program':
            program.version = event.version;
            break;
        case 'rules':
            program.rules = event.text;
            break;
        case 'position':
            feed.isCurrent ||= event.isCurrent;
            break;
        case 'dropped':
            program.hasDropped = true;
            break;
        case 'connection':
            Object.assign(of(), { problem: undefined, needsLogin: false }, event);
            break;
        case 'list':
            of().lists[event.list] = { items: event.items ?? [], problem: event.problem ?? undefined };
            break;
        case 'doctor':
            of().doctor = event;
            break;
        case 'check':
            of().check = event;
            break;
        case 'load':
            of().load = event;
            break;
        case 'replay':
            of().replay = event;
            break;
        case 'login':
            of().login = event;
            break;
        case 'auth':
            of().auth[event.number] = event;
            break;
        case 'task':
            of().tasks.set(event.task, event);
            break;
        case 'question':
            questions.set(event.question, event);
            break;
        case 'call':
            keep(event);
            break;
        case 'progress':
            if (calls.get(event.call)?.state === 'running') progress.set(event.call, event);
            break;
        case 'wire':
            of().wire.add(event.line, clock());
            break;
        case 'forgotten':
            forget(event.prefix);
            break;
    }
}

/** @param {Call} call */
function keep(call) {
    const size = (/** @type {Call | undefined} */ it) => (it?.result?.length ?? 0) + (it?.params.length ?? 0);
    characters += size(call) - size(calls.get(call.call));
    calls.set(call.call, call);
    if (call.state !== 'running') progress.delete(call.call);
    if (call.state === 'done' && call.result) noteTask(call, call.result);
    for (const [name, old] of calls) {
        if (calls.size <= MOST_CALLS && characters <= MOST_CHARACTERS) break;
        if (name === call.call || old.state === 'running' || awaited.has(name)) continue;
        characters -= size(old);
        calls.delete(name);
    }
}

/**
 * In 2025-11-25 the result of a call may be its task; what asks for a task says how it is. @param {Call} call
 * @param {string} result
 */
function noteTask(call, result) {
    const isLook = call.method === 'tasks/get' || call.method === 'tasks/cancel';
    const task = call.method === 'tools/call' ? member(result, 'task') : isLook ? result : null;
    const id = task && (textMember(task, 'taskId') ?? (isLook ? textMember(call.params, 'taskId') : null));
    const status = task && textMember(task, 'status');
    if (!id || !status) return;
    const { tasks } = connection(call.connection);
    tasks.set(id, { call: call.call, ...tasks.get(id), task: id, status, message: textMember(task, 'statusMessage') });
}

/** @param {string} prefix */
function forget(prefix) {
    const [, number, what, question] = prefix.match(/^c(\d+)\/(?:(login|auth\/|question\/(\d+)\/))?$/) ?? [];
    if (!number) return;
    const of = Number(number);
    if (question) questions.delete(Number(question));
    else if (what === 'login') delete connections.get(of)?.login;
    else if (what === 'auth/') connection(of).auth = [];
    else {
        gone.add(of);
        connections.delete(of);
        for (const [key, it] of questions) if (it.connection === of) questions.delete(key);
        for (const [key, it] of calls) {
            if (it.connection !== of) continue;
            characters -= (it.result?.length ?? 0) + it.params.length;
            calls.delete(key);
            progress.delete(key);
        }
    }
}

/** Whether something may still happen on a connection. @param {Connection} it */
export const isLive = it => it.state === 'open' || it.state === 'connecting';

/** What to call a connection. @param {Connection} it @returns {string} */
export const nameOf = it => it.info?.serverInfo?.title ?? it.info?.serverInfo?.name ?? (it.name || it.about);
