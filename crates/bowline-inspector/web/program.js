// @ts-check
/** The way to the program: a key for a ticket, requests, and the feed of events. */

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
 * Reads the feed until it ends.
 * @param {(events: any[]) => void} hear
 */
export async function follow(hear) {
    const response = await post('/api/events', '{"after":0}');
    const body = /** @type {ReadableStream<BufferSource>} */ (/** @type {unknown} */ (response.body));
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        const lines = (rest + value).split('\n');
        rest = lines.pop() ?? '';
        if (lines.length) hear(lines.map(line => JSON.parse(line)));
    }
}
