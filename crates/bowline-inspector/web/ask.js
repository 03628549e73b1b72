// @ts-check
/** Calls of the page's own, whose outcome is waited for. */
import { act } from './program.js';
import { awaited, calls, connections, feed, listen } from './store.js';

let next = 0;

/**
 * Calls a method of a server, and returns its result as text. @param {number} connection @param {string} method
 * @param {unknown} params @returns {Promise<string>}
 */
export function ask(connection, method, params) {
    const name = `ask-${Date.now().toString(36)}-${++next}`;
    awaited.add(name);
    let wasSeen = false;
    return new Promise((resolve, reject) => {
        const look = () => {
            const call = calls.get(name);
            wasSeen ||= Boolean(call);
            if (call?.state === 'done') end(() => resolve(call.result ?? 'null'));
            else if (call && call.state !== 'running') end(() => reject(new Error(call.problem?.what ?? call.state)));
            // What the feed no longer has after it was read to its end will not come.
            else if (!call && feed.isCurrent && (wasSeen || !connections.has(connection)))
                end(() => reject(new Error(`${method}: the connection was closed, or its result dropped`)));
        };
        const stop = listen(look);
        const end = (/** @type {() => void} */ settle) => {
            stop();
            awaited.delete(name);
            settle();
        };
        act('call', { connection, call: name, method, params }).catch(error => end(() => reject(error)));
    });
}
