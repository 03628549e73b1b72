// @ts-check
/** The way to the program: a key for a ticket, requests, and the feed of events. */
import { toast } from './dom.js';

const KEY = 'bowline-key';
const TICKET = /^#ticket=([0-9a-f]+)&?/;
let key = '';

/** What the program says when it cannot. */
export class Problem extends Error {
    /** @param {string} what @param {string} [remedy] @param {number} [status] */
    constructor(what, remedy, status) {
        super(what);
        this.remedy = remedy;
        this.status = status;
    }
    /** All of it on one line. */
    get words() {
        return this.remedy ? `${this.message}. Help: ${this.remedy}` : this.message;
    }
}

/** What went wrong, in words. @param {unknown} error */
export const said = error =>
    error instanceof Problem ? error.words : error instanceof Error ? error.message : String(error);

/** Does something for a button; what goes wrong is said. @param {() => unknown} work */
export const attempt = work => async () => {
    try {
        await work();
    } catch (error) {
        toast(said(error));
    }
};

/** @param {string} path @param {string} body @param {AbortSignal} [signal] */
async function post(path, body, signal) {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
    const response = await fetch(path, { method: 'POST', headers, body, signal });
    if (response.ok) return response;
    const told = await response.json().catch(() => ({}));
    throw new Problem(told.what ?? `HTTP ${response.status}`, told.remedy, response.status);
}

/** Whether an address holds a ticket. @param {string} hash */
export const hasTicket = hash => TICKET.test(hash);

/** Uses the ticket in the address, if there is one, and removes it from there. */
export async function open() {
    key ||= localStorage.getItem(KEY) ?? '';
    const ticket = location.hash.match(TICKET)?.[1];
    if (!ticket) return;
    history.replaceState(null, '', location.pathname + location.hash.replace(TICKET, '#'));
    try {
        key = (await (await post('/api/open', JSON.stringify({ ticket }))).json()).key;
        localStorage.setItem(KEY, key);
    } catch (error) {
        // A reload, or the address again in a browser that has a key already.
        if (!key) throw error;
    }
}

/**
 * Asks the program to do something. `raw` members are JSON text, and sent as they are.
 * @param {string} what @param {Record<string, unknown>} [members] @param {Record<string, string>} [raw]
 */
export async function act(what, members = {}, raw = {}) {
    const all = [
        ...Object.entries(members).map(([name, value]) => [name, JSON.stringify(value)]),
        ...Object.entries(raw)
    ];
    const body = all.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',');
    return (await post('/api/do', `{${JSON.stringify(what)}:{${body}}}`)).json();
}

/** An address for another browser. @returns {Promise<string>} */
export async function ticket() {
    return (await (await post('/api/ticket', '{}')).json()).address;
}

/**
 * Reads the feed until it ends, from a position; events are heard with the position after them, so that nothing is
 * heard twice by whoever goes on from there.
 * @param {number} after @param {(events: any[], position: number) => void} hear @param {AbortSignal} signal
 */
export async function follow(after, hear, signal) {
    const response = await post('/api/events', JSON.stringify({ after }), signal);
    const body = /** @type {ReadableStream<BufferSource>} */ (/** @type {unknown} */ (response.body));
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    /** @type {string[]} */
    let rest = [];
    /** @type {any[]} */
    let events = [];
    for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        const lines = value.split('\n');
        rest.push(lines[0]);
        if (lines.length === 1) continue;
        lines[0] = rest.join('');
        rest = [lines.pop() ?? ''];
        for (const line of lines) {
            const event = JSON.parse(line);
            events.push(event);
            if (event.event !== 'position') continue;
            hear(events, event.after);
            events = [];
        }
    }
}
