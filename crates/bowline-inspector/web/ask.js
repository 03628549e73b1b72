// @ts-check
/** Calls of the page's own, whose outcome is waited for. */
import { act } from './program.js';
import { calls, listen } from './store.js';

let next = 0;

/**
 * Calls a method of a server, and returns its result as text. @param {number} connection @param {string} method
 * @param {unknown} params @returns {Promise<string>}
 */
export function ask(connection, method, params) {
    const name = `ask-${Date.now().toString(36)}-${++next}`;
    return new Promise((resolve, reject) => {
        const stop = listen(() => {
            const call = calls.get(name);
            if (!call || call.state === 'running') return;
            stop();
            if (call.state === 'done') resolve(call.result ?? 'null');
            else reject(new Error(call.problem?.what ?? call.state));
        });
        act('call', { connection, call: name, method, params }).catch(error => {
            stop();
            reject(error);
        });
    });
}
