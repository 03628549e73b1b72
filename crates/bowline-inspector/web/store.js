// @ts-check
/** Everything that is known, folded from the feed; views are told what changed. */
import { Wire } from './wire.js';

/** @typedef {{number: number, state: string, about: string, name: string, place?: any, info?: any, problem?: any, isTap?: boolean,
 *   lists: Record<string, {items: any[], problem?: string}>, doctor?: any, check?: any, load?: any, tasks: Map<string, any>, needsLogin?: boolean, wire: Wire}} Connection */

/** @type {Map<number, Connection>} */
export const connections = new Map();
/** @type {Map<number, any>} */
export const questions = new Map();
/** @type {Map<string, any>} */
export const calls = new Map();
/** @type {Map<string, any>} */
export const progress = new Map();

const listeners = new Set();
/** @param {(kinds: Set<string>) => void} listener */
export function listen(listener) {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

/** @param {number} number @returns {Connection} */
export function connection(number) {
    let found = connections.get(number);
    if (!found) {
        found = { number, state: 'connecting', about: '', name: '', lists: {}, tasks: new Map(), wire: new Wire() };
        connections.set(number, found);
    }
    return found;
}

/** Starts over, for a feed that is read from its beginning. */
export function reset() {
    for (const map of [connections, questions, calls, progress]) map.clear();
}

/** @param {any[]} events */
export function hear(events) {
    const kinds = new Set();
    for (const event of events) {
        kinds.add(event.event);
        switch (event.event) {
            case 'connection': Object.assign(connection(event.connection), { problem: undefined }, event); break;
            case 'list': connection(event.connection).lists[event.list] = { items: event.items ?? [], problem: event.problem }; break;
            case 'doctor': case 'check': case 'load': connection(event.connection)[/** @type {'doctor'} */ (event.event)] = event; break;
            case 'task': connection(event.connection).tasks.set(event.task, event); break;
            case 'question': questions.set(event.question, event); break;
            case 'call': if (calls.get(event.call)?.state !== 'cancelled') calls.set(event.call, event); break;
            case 'cancelled': { const call = calls.get(event.call); if (call?.state === 'running') call.state = 'cancelled'; break; }
            case 'progress': progress.set(event.call, event); break;
            case 'wire': { const it = connection(event.connection); if (!it.about) it.about = `connection ${event.connection}`; it.wire.add(event.line); break; }
            case 'forgotten': forget(event.prefix); break;
        }
    }
    for (const listener of listeners) listener(kinds);
}

/** @param {string} prefix */
function forget(prefix) {
    const [, number, question] = prefix.match(/^c(\d+)\/(?:question\/(\d+)\/)?$/) ?? [];
    if (question) questions.delete(Number(question));
    else if (number) {
        connections.delete(Number(number));
        for (const [key, it] of questions) if (it.connection === Number(number)) questions.delete(key);
        for (const [key, it] of calls) if (it.connection === Number(number)) calls.delete(key);
    }
}
