// @ts-check
/**
 * A session as rows: each request with its answer, rounds and polls below their call. Bounded: of what does not fit,
 * the oldest goes, and is counted. Nothing here needs a document.
 */

/**
 * @typedef {{seq: number, at: number, way: string, what: string, kind: string, source: string, line: string,
 *   method?: string, id?: string, answer?: {at: number, line: string}, child?: boolean, error?: boolean,
 *   gap?: number, until?: number}} Row
 * @typedef {{method: string, count: number, errors: number, waiting: number, answered: number, times: number[]}} Statistics
 * @typedef {{[name: string]: any}} Message
 */

export const MOST_ROWS = 200_000;
export const MOST_CHARACTERS = 128 << 20;
const MOST_STATES = 10_000;
const MOST_METHODS = 200;
/** Percentiles are those of this many answers, the latest. */
const MOST_TIMES = 10_000;
/** Silence that is marked, and waiting that is called a hang, in seconds. */
export const GAP = 2;
export const HANG = 5;

/** A set that forgets the oldest. @template T @param {Set<T>} set @param {T} it */
function remember(set, it) {
    set.add(it);
    if (set.size > MOST_STATES)
        for (const oldest of set) {
            set.delete(oldest);
            break;
        }
}

/** The messages of one session. */
export class Wire {
    /** @param {{rows?: number, characters?: number}} [limits] */
    constructor({ rows = MOST_ROWS, characters = MOST_CHARACTERS } = {}) {
        this.limits = { rows, characters };
        /** @type {Row[]} */
        this.rows = [];
        /** @type {string[]} */
        this.lines = [];
        /** The first line, which says what session it is. @type {string | null} */
        this.opening = null;
        /** Rows that have changed since they were added. @type {Row[]} */
        this.changed = [];
        /** How many rows have been dropped, and how often. */
        this.dropped = 0;
        this.drops = 0;
        this.characters = 0;
        /** When the latest message was. */
        this.end = 0;
        /** How far the clock of the session is ahead of that of the page, at least. */
        this.ahead = -Infinity;
        /** @type {Map<string, Row>} */
        this.waiting = new Map();
        /** @type {Set<string>} */
        this.states = new Set();
        /** @type {Set<string>} */
        this.tasks = new Set();
        /** @type {Map<string, Statistics>} */
        this.methods = new Map();
        this.next = 0;
    }

    /** The number of the first row that is still there. */
    get first() {
        return this.rows[0]?.seq ?? this.next;
    }

    /**
     * What time it is in the session, if something waits for an answer; else nothing happens after its latest message.
     * @param {number} [heard] the clock of the page, if the session goes on
     */
    now(heard) {
        if (heard !== undefined)
            for (const row of this.waiting.values()) if (mayHang(row)) return Math.max(this.end, heard + this.ahead);
        return this.end;
    }

    /** @param {string} text a line of a session file @param {number} [heard] when it came, on the clock of the page */
    add(text, heard) {
        /** @type {Message} */
        let line;
        try {
            line = JSON.parse(text);
        } catch {
            return;
        }
        if (typeof line !== 'object' || line === null || typeof line.kind !== 'string') return;
        this.lines.push(text);
        this.characters += text.length;
        const at = Number(line.at) || 0;
        const way = line.direction === 'sent' ? '→' : line.direction === 'received' ? '←' : '·';
        const base = { at, way, line: text, kind: line.kind, source: line.kind };
        const gap = this.rows.length && at - this.end >= GAP ? at - this.end : undefined;
        const before = this.rows.length;
        this.end = Math.max(this.end, at);
        if (heard !== undefined) this.ahead = Math.max(this.ahead, at - heard);
        if (line.kind === 'message') {
            for (const one of Array.isArray(line.message) ? line.message : [line.message])
                this.message(base, line, one);
        } else this.other(base, line);
        if (gap && this.rows.length > before) this.rows[before].gap = gap;
        if (this.rows.length > this.limits.rows || this.characters > this.limits.characters) this.drop();
    }

    /** @param {Omit<Row, 'seq'>} row @returns {Row} */
    push(row) {
        const added = { seq: this.next++, ...row };
        this.rows.push(added);
        return added;
    }

    /** @param {Omit<Row, 'seq' | 'what'>} base @param {Message} line */
    other(base, line) {
        if (line.kind === 'session') this.opening ??= base.line;
        if (line.kind === 'end') this.giveUp(base.at);
        const { http } = line;
        const status = http?.status ? ` → ${http.status}` : '';
        const what =
            line.kind === 'http'
                ? `${http?.method} ${http?.url}${status}`
                : line.kind === 'session'
                  ? 'session begins'
                  : line.kind === 'end'
                    ? `session ends ${line.text ?? ''}`
                    : line.kind === 'lost'
                      ? `${line.length ?? 'some'} lines are missing here`
                      : String(line.text ?? line.kind);
        this.push({ ...base, what, error: ['fault', 'lost'].includes(line.kind) || (http?.status ?? 0) >= 400 });
    }

    /** @param {Omit<Row, 'seq' | 'what'>} base @param {Message} line @param {Message} it */
    message(base, line, it) {
        const lane = (/** @type {string} */ way) => `${way} ${line.connection ?? ''} ${JSON.stringify(it?.id)}`;
        if (typeof it?.method === 'string' && it.id !== undefined) {
            const p = it.params ?? {};
            const subject = words(p.name ?? p.uri ?? p.taskId);
            const isRound = p.requestState !== undefined && this.states.has(JSON.stringify(p.requestState));
            const child = isRound || (it.method.startsWith('tasks/') && this.tasks.has(p.taskId));
            const row = this.push({
                ...base,
                kind: 'request',
                method: it.method,
                what: `${it.method} ${subject}`.trim(),
                id: JSON.stringify(it.id),
                child
            });
            this.waiting.set(lane(base.way), row);
            const of = this.statistics(it.method);
            of.count++;
            of.waiting++;
        } else if (typeof it?.method === 'string') {
            this.push({
                ...base,
                kind: 'notification',
                method: it.method,
                what: `${it.method} ${words(it.params?.message ?? it.params?.data)}`.trim()
            });
        } else if (it && it.id !== undefined && ('result' in it || 'error' in it))
            this.answer(base, it, lane(base.way === '→' ? '←' : '→'));
        else this.push({ ...base, kind: 'noise', what: line.text ?? 'not a message', error: true });
    }

    /** @param {Omit<Row, 'seq' | 'what'>} base @param {Message} it @param {string} lane */
    answer(base, it, lane) {
        const asked = this.waiting.get(lane);
        this.waiting.delete(lane);
        const error = 'error' in it || it.result?.isError === true;
        if (it.result?.requestState !== undefined) remember(this.states, JSON.stringify(it.result.requestState));
        const task = it.result?.task?.taskId ?? it.result?.taskId;
        if (task) remember(this.tasks, task);
        if (!asked) {
            this.push({
                ...base,
                kind: 'answer',
                what: `answer ${JSON.stringify(it.id)} to nothing that was seen`,
                error
            });
            return;
        }
        asked.answer = { at: base.at, line: base.line };
        asked.error = error;
        this.changed.push(asked);
        const of = this.statistics(asked.method ?? '');
        of.waiting--;
        if (error) of.errors++;
        of.times[of.answered++ % MOST_TIMES] = base.at - asked.at;
    }

    /** What still waits is not answered any more: another connection may use its ids again. @param {number} at */
    giveUp(at) {
        for (const row of this.waiting.values()) {
            row.until = at;
            this.changed.push(row);
            this.statistics(row.method ?? '').waiting--;
        }
        this.waiting.clear();
    }

    /** @param {string} method @returns {Statistics} */
    statistics(method) {
        let found = this.methods.get(method);
        if (!found) {
            if (this.methods.size >= MOST_METHODS) return this.statistics(this.methods.keys().next().value ?? method);
            this.methods.set(method, (found = { method, count: 0, errors: 0, waiting: 0, answered: 0, times: [] }));
        }
        return found;
    }

    /** Makes room: a tenth of the rows and lines, the oldest. */
    drop() {
        const lines = this.lines.splice(0, Math.max(1, this.lines.length / 10));
        const gone = new Set(lines);
        let rows = 0;
        while (rows < this.rows.length && gone.has(this.rows[rows].line)) rows++;
        this.rows.splice(0, rows);
        this.dropped += rows;
        this.characters -= lines.reduce((sum, line) => sum + line.length, 0);
        for (const [lane, row] of this.waiting) if (row.seq < this.first) this.waiting.delete(lane);
        this.changed = this.changed.filter(row => row.seq >= this.first);
        this.drops++;
    }

    /** The session as a file. */
    text() {
        const lines = this.opening && this.lines[0] !== this.opening ? [this.opening, ...this.lines] : this.lines;
        return `${lines.join('\n')}\n`;
    }
}

/** Whether a request may still be answered. @param {Row} row */
export const waits = row => row.kind === 'request' && !row.answer && row.until === undefined;
/** A stream of changes is there to stay open. @param {Row} row */
const mayHang = row => waits(row) && row.method !== 'subscriptions/listen';

/** Whether a request has waited for too long. @param {Row} row @param {number} now */
export const hangs = (row, now) => mayHang(row) && now - row.at > HANG;

/** @param {unknown} it */
const words = it =>
    (it === undefined || it === null ? '' : typeof it === 'string' ? it : JSON.stringify(it)).slice(0, 300);

/** The value below which a share of sorted times is. @param {number[]} sorted @param {number} share */
export const percentile = (sorted, share) =>
    sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(sorted.length * share) - 1))] ?? 0;

/**
 * Round values between two, about so many. @param {number} from @param {number} to @param {number} most
 * @returns {{at: number, text: string}[]}
 */
export function ticks(from, to, most) {
    const rough = (to - from) / most;
    if (!(rough > 0) || !Number.isFinite(rough)) return [];
    const power = Math.floor(Math.log10(rough));
    const step = ([1, 2, 5].find(it => it * 10 ** power >= rough) ?? 10) * 10 ** power;
    const digits = Math.min(9, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
    const found = [];
    for (let at = Math.ceil(from / step - 1e-9); at * step <= to && found.length <= most; at++)
        found.push({ at: at * step, text: (at * step).toFixed(digits) });
    return found;
}

/** How long each method took. @param {Wire} wire */
export function statistics(wire) {
    return [...wire.methods.values()]
        .map(({ times, ...of }) => {
            const sorted = [...times].sort((a, b) => a - b);
            return {
                ...of,
                p50: percentile(sorted, 0.5),
                p90: percentile(sorted, 0.9),
                p99: percentile(sorted, 0.99),
                max: sorted.at(-1) ?? 0
            };
        })
        .sort((a, b) => b.count - a.count);
}

/** @typedef {{query?: string, hasHttp?: boolean, from?: number, to?: number}} Wanted */

/** The rows of a session that fit a query, kept up to date by looking only at what is new or has changed. */
export class Filter {
    /** @param {Wire} wire @param {Wanted} wanted */
    constructor(wire, { query = '', hasHttp = false, from = 0, to = Infinity }) {
        this.wire = wire;
        this.hasHttp = hasHttp;
        this.from = from;
        this.to = to;
        this.tests = query
            .split(/\s+/)
            .filter(Boolean)
            .map(word => test(word.toLowerCase()));
        /** @type {Row[]} */
        this.shown = [];
        /** The next row to look at, and how many changes have been looked at. */
        this.seen = 0;
        this.changes = wire.changed.length;
        this.drops = wire.drops;
    }

    /** @param {Row} row */
    fits(row) {
        const end = row.answer?.at ?? row.until ?? (row.kind === 'request' ? this.wire.end : row.at);
        if (!this.hasHttp && row.kind === 'http') return false;
        return row.at <= this.to && end >= this.from && this.tests.every(test => test(row));
    }

    /** Looks at what is new, and at no more rows than this. Returns how many it has looked at. */
    update(most = Infinity) {
        const { wire } = this;
        const { first } = wire;
        if (this.shown.length && this.shown[0].seq < first) this.shown.splice(0, place(this.shown, first));
        let count = 0;
        const changed = wire.changed.slice(this.drops === wire.drops ? this.changes : 0);
        this.changes = wire.changed.length;
        this.drops = wire.drops;
        for (const row of changed) {
            if (row.seq >= this.seen) continue;
            count++;
            const at = place(this.shown, row.seq);
            const isShown = this.shown[at] === row;
            if (this.fits(row) !== isShown) this.shown.splice(at, isShown ? 1 : 0, ...(isShown ? [] : [row]));
        }
        this.seen = Math.max(this.seen, first);
        for (; this.seen < wire.next && count < most; this.seen++, count++) {
            const row = wire.rows[this.seen - first];
            if (this.fits(row)) this.shown.push(row);
        }
        return count;
    }

    get isDone() {
        return this.seen >= this.wire.next;
    }
}

/** Where a row is, or would be. @param {Row[]} rows @param {number} seq */
function place(rows, seq) {
    let low = 0;
    let high = rows.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (rows[middle].seq < seq) low = middle + 1;
        else high = middle;
    }
    return low;
}

/** @param {string} word @returns {(row: Row) => boolean} */
function test(word) {
    if (word === 'error') return row => row.error === true;
    if (word === 'waiting') return waits;
    if (word === 'slow') return row => (row.answer ? row.answer.at - row.at > 1 : row.kind === 'request');
    const pattern = new RegExp(word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i');
    return row =>
        row.kind === word ||
        pattern.test(row.what) ||
        pattern.test(row.line) ||
        Boolean(row.answer && pattern.test(row.answer.line));
}
