// The checks that every TypeScript client runs, for both major versions of the SDK.
//
// A walk is one connection in one mode. It prints `ok <mode> <check>` or
// `not ok <mode> <check>: <reason>` for each check.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const WITNESS = join(dirname(fileURLToPath(import.meta.url)), '..', 'witness.sh');
const PATIENCE_MS = 120_000;

let failures = 0;

/** Exits with 1 if a check failed. */
export function finish() {
    process.exit(failures > 0 ? 1 : 0);
}

/** Runs one check, prints its outcome, and returns whether it passed. */
async function check(mode, name, work) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error('timed out')), PATIENCE_MS);
    });
    try {
        await Promise.race([work(), late]);
        console.log(`ok ${mode} ${name}`);
        return true;
    } catch (error) {
        failures += 1;
        const reason = String(error?.message ?? error).replaceAll(/\s+/g, ' ');
        console.log(`not ok ${mode} ${name}: ${reason}`);
        return false;
    } finally {
        clearTimeout(timer);
    }
}

/** Waits until a condition holds. */
export async function until(isSo) {
    while (!(await isSo())) {
        await sleep(10);
    }
}

/** The error of a promise that must be rejected. */
export async function refused(promise) {
    try {
        await promise;
    } catch (error) {
        return error;
    }
    throw new Error('was not rejected');
}

export const text = result => result.content.map(block => block.text).join('');
export const names = list => list.map(item => item.name);

/**
 * Connects and checks everything.
 *
 * `mode` is the name of the walk. `suite` and `target` are what [`parse`] finds in the arguments.
 * `open(server)` connects to `{ command, args }` or `{ url }`, through [`transport`], and returns the peer:
 *
 * - `client`: the client itself, for the calls that are the same in both versions
 * - `revision`: the negotiated revision
 * - `heard`: the notifications so far
 * - `asked`: the requests of the server so far
 * - `elicited`: the user's answer; can be changed
 * - `call(name, args, options, meta)`: calls a tool
 * - `isMissing(error)`: whether the error means that a resource does not exist
 * - `watch(filter)`: subscribes to changes; returns a function that unsubscribes
 */
export async function walk(mode, { suite, target }, open) {
    const site = target[0].startsWith('http://') ? new Remote(target[0]) : new Local(target);
    let peer;
    try {
        const connect = async () => {
            peer = await site.open(open);
        };
        if (await check(mode, 'connect', connect)) {
            for (const [name, work] of checksFor(suite, peer.revision)) {
                await check(mode, name, () => work(peer));
            }
            await check(mode, 'shutdown', () => site.shutdown(peer));
        }
        if (suite !== EVERYTHING) {
            return;
        }
        const another = async () => {
            peer = await site.open(open);
            const before = Number(text(await peer.call('abandoned')));
            await new Promise((resolve, reject) => {
                peer.call('wait', {}, { onprogress: resolve }).catch(reject);
            });
            await peer.call('echo', { message: 'busy' });
            await site.shutdown(peer);
            await site.checkAbandoned(open, before + 1);
        };
        await check(mode, 'shutdown-busy', another);
    } finally {
        site.dispose();
    }
}

/**
 * The arguments of a walk: `[--suite NAME] <server command… or URL>`. Without a suite, the server is
 * `examples/everything.rs`.
 */
export function parse([first, name, ...rest], suites) {
    if (first !== '--suite') {
        return { suite: EVERYTHING, target: name === undefined ? [first] : [first, name, ...rest] };
    }
    assert.ok(suites[name], `unknown suite ${name}`);
    return { suite: suites[name], target: rest };
}

/** The transport to a server, of one version of the SDK. It keeps progress notifications in `reports`. */
export function transport({ url, ...server }, { stdio, http, sse }) {
    const connection = open();
    connection.reports = [];
    // The clients pass every message on to the previous handler.
    connection.onmessage = ({ method, params }) => {
        if (method === 'notifications/progress') {
            connection.reports.push(params);
        }
    };
    return connection;

    function open() {
        if (url === undefined) {
            return new stdio(server);
        }
        return url.pathname === '/sse' ? new sse(url) : new http(url);
    }
}

/**
 * Calls a tool, and returns its text and the progress notifications as the transport saw them. The clients drop
 * notifications that arrive together with the answer.
 */
export async function reported(peer, name, args) {
    const { reports } = peer.client.transport;
    reports.length = 0;
    const result = await peer.call(name, args, { onprogress() {} });
    return [text(result), reports];
}

/** A server that its client starts, and that exits with the connection. */
class Local {
    constructor(command) {
        this.folder = mkdtempSync(join(tmpdir(), 'interop-'));
        this.status = join(this.folder, 'status');
        this.server = { command: 'sh', args: [WITNESS, this.status, ...command] };
    }

    async open(open) {
        const peer = await open(this.server);
        // A client may have probed another process before.
        rmSync(this.status, { force: true });
        return peer;
    }

    async shutdown(peer) {
        await peer.client.close();
        const written = () => {
            try {
                return readFileSync(this.status, 'utf8').trim();
            } catch {
                return '';
            }
        };
        await until(() => written() !== '');
        assert.equal(written(), '0', 'exit status');
    }

    /** Nothing to check: calls end with the process. */
    async checkAbandoned() {}

    dispose() {
        rmSync(this.folder, { recursive: true });
    }
}

/** A running server that outlives its clients. */
class Remote {
    constructor(url) {
        this.url = new URL(url);
    }

    open(open) {
        return open({ url: this.url });
    }

    async shutdown(peer) {
        // Closing alone does not end a session.
        await peer.client.transport.terminateSession?.();
        await peer.client.close();
        const health = await fetch(new URL('/health', this.url));
        assert.equal(health.status, 200, 'health');
    }

    /** Calls that a client leaves behind are stopped. */
    async checkAbandoned(open, wanted) {
        const peer = await this.open(open);
        await until(async () => Number(text(await peer.call('abandoned'))) === wanted);
        await this.shutdown(peer);
    }

    dispose() {}
}

/** The checks that apply in a revision. */
function checksFor(suite, revision) {
    return Object.entries(suite)
        .filter(([, { since = '', before = '9' }]) => since <= revision && revision < before)
        .map(([name, { work }]) => [name, work]);
}

const EVERYTHING = {
    identity: {
        async work({ client, revision }) {
            assert.equal(client.getServerVersion()?.name, 'everything');
            assert.equal(client.getInstructions(), 'Try every tool once.');
            const capabilities = client.getServerCapabilities();
            const wanted = ['tools', 'resources', 'prompts', 'logging'];
            if (revision >= '2025-03-26') {
                wanted.push('completions');
            }
            for (const name of wanted) {
                assert.ok(capabilities[name], name);
            }
        }
    },
    ping: {
        before: '2026-07-28',
        async work({ client }) {
            await client.ping();
        }
    },
    'list-tools': {
        async work({ client, revision }) {
            const { tools } = await client.listTools();
            const wanted = ['echo', 'structured', 'content', 'failing', 'slow', 'logging', 'elicit'];
            for (const name of wanted) {
                assert.ok(names(tools).includes(name), name);
            }
            const echo = tools.find(tool => tool.name === 'echo');
            assert.equal(echo.inputSchema.properties.message.type, 'string');
            const structured = tools.find(tool => tool.name === 'structured');
            const hasOutput = revision >= '2025-06-18';
            assert.equal(structured.outputSchema?.properties.total.type, hasOutput ? 'integer' : undefined);
        }
    },
    'list-resources': {
        async work({ client }) {
            const { resources } = await client.listResources();
            assert.deepEqual(names(resources), ['static', 'bytes', 'counter']);
        }
    },
    'list-templates': {
        async work({ client }) {
            const { resourceTemplates } = await client.listResourceTemplates();
            assert.equal(resourceTemplates[0].uriTemplate, 'test://users/{name}');
        }
    },
    'list-prompts': {
        async work({ client }) {
            const { prompts } = await client.listPrompts();
            assert.deepEqual(names(prompts), ['plain', 'greet']);
            const required = prompts[1].arguments.map(argument => argument.required);
            assert.deepEqual(required, [true, false]);
        }
    },
    'call-text': {
        async work(peer) {
            const said = 'knots: ⚓ \n "quoted"';
            assert.equal(text(await peer.call('echo', { message: said })), said);
        }
    },
    'call-structured': {
        since: '2025-06-18',
        async work(peer) {
            const { structuredContent } = await peer.call('structured', { a: 2, b: 3 });
            assert.deepEqual(structuredContent, { total: 5, parts: [2, 3], note: null });
        }
    },
    'call-content': {
        async work(peer) {
            const { content } = await peer.call('content');
            const sound = peer.revision >= '2025-03-26' ? 'audio' : 'text';
            assert.deepEqual(
                content.map(block => block.type),
                ['text', 'image', sound, 'resource']
            );
        }
    },
    'call-failing': {
        async work(peer) {
            const result = await peer.call('failing');
            assert.equal(result.isError, true);
            assert.equal(text(result), 'there is no luck today');
        }
    },
    'call-unknown': {
        async work(peer) {
            assert.equal((await refused(peer.call('nothing'))).code, -32602);
        }
    },
    'call-wrong': {
        async work(peer) {
            const call = peer.call('structured', { a: 'two', b: 3 });
            if (peer.revision >= '2025-11-25') {
                const result = await call;
                assert.equal(result.isError, true);
                assert.match(text(result), /arguments\.a/);
            } else {
                assert.equal((await refused(call)).code, -32602);
            }
        }
    },
    'call-many': {
        async work(peer) {
            const numbers = Array.from({ length: 100 }, (_, number) => String(number));
            const answers = await Promise.all(numbers.map(message => peer.call('echo', { message })));
            assert.deepEqual(answers.map(text), numbers);
        }
    },
    'call-large': {
        async work(peer) {
            const message = 'x'.repeat(2_000_000);
            assert.equal(text(await peer.call('echo', { message })), message);
        }
    },
    'read-text': {
        async work({ client }) {
            const { contents } = await client.readResource({ uri: 'test://static' });
            assert.equal(contents[0].text, 'always the same');
            assert.equal(contents[0].mimeType, 'text/plain');
        }
    },
    'read-bytes': {
        async work({ client }) {
            const { contents } = await client.readResource({ uri: 'test://bytes' });
            assert.deepEqual([...Buffer.from(contents[0].blob, 'base64')], [0, 255]);
        }
    },
    'read-template': {
        async work({ client }) {
            const { contents } = await client.readResource({ uri: 'test://users/ada' });
            assert.equal(contents[0].text, 'user ada');
        }
    },
    'read-missing': {
        async work({ client, isMissing }) {
            for (const uri of ['test://nothing', 'test://users/nobody']) {
                assert.ok(isMissing(await refused(client.readResource({ uri }))), uri);
            }
        }
    },
    'prompt-plain': {
        async work({ client }) {
            const { messages } = await client.getPrompt({ name: 'plain' });
            assert.equal(messages[0].content.text, 'Say something nice.');
        }
    },
    'prompt-arguments': {
        async work({ client }) {
            const given = { name: 'Ada', style: 'formal' };
            const { messages } = await client.getPrompt({ name: 'greet', arguments: given });
            assert.equal(messages[0].content.text, 'Greet Ada in a Formal way.');
            assert.equal(messages[1].role, 'assistant');
        }
    },
    'prompt-wrong': {
        async work({ client }) {
            assert.equal((await refused(client.getPrompt({ name: 'greet' }))).code, -32602);
        }
    },
    'complete-prompt': {
        async work({ client }) {
            const ref = { type: 'ref/prompt', name: 'greet' };
            const name = await client.complete({ ref, argument: { name: 'name', value: 'a' } });
            assert.deepEqual(name.completion.values, ['ada', 'alan']);
            const style = await client.complete({ ref, argument: { name: 'style', value: 'fo' } });
            assert.deepEqual(style.completion.values, ['formal']);
        }
    },
    'complete-template': {
        async work({ client }) {
            const ref = { type: 'ref/resource', uri: 'test://users/{name}' };
            const { completion } = await client.complete({ ref, argument: { name: 'name', value: 'g' } });
            assert.deepEqual(completion.values, ['grace']);
        }
    },
    progress: {
        async work(peer) {
            const [said, reports] = await reported(peer, 'slow', { steps: 3, ms: 20 });
            assert.equal(said, '3 steps');
            assert.deepEqual(
                reports.map(report => [report.progress, report.total]),
                [1, 2, 3].map(step => [step, 3])
            );
            const message = peer.revision >= '2025-03-26' ? 'step 3' : undefined;
            assert.equal(reports[2].message, message);
        }
    },
    logs: {
        async work(peer) {
            const loud = ['warning', 'error', 'critical', 'alert', 'emergency'];
            peer.heard.length = 0;
            if (peer.revision >= '2026-07-28') {
                const meta = { 'io.modelcontextprotocol/logLevel': 'warning' };
                await peer.call('logging', {}, {}, meta);
                // Clients that do not request logs get none.
                await peer.call('logging');
            } else {
                await peer.client.setLoggingLevel('warning');
                await peer.call('logging');
            }
            const logs = peer.heard.filter(({ method }) => method === 'notifications/message');
            assert.deepEqual(
                logs.map(({ params }) => params.level),
                loud
            );
            assert.equal(logs[0].params.data, 'a message of level warning');
        }
    },
    elicit: {
        since: '2025-06-18',
        async work(peer) {
            peer.asked.length = 0;
            const content = { name: 'Ada', count: 2, size: 'large' };
            peer.elicited = { action: 'accept', content };
            assert.equal(text(await peer.call('elicit')), 'Ada: 2 Large false');
            const { message, requestedSchema } = peer.asked[0].params;
            assert.equal(message, 'What would you like?');
            assert.deepEqual(requestedSchema.required, ['name', 'count', 'size']);
            assert.deepEqual(requestedSchema.properties.size.enum, ['small', 'large']);
            peer.elicited = { action: 'decline' };
            assert.equal(text(await peer.call('elicit')), 'declined');
            peer.elicited = { action: 'cancel' };
            assert.equal(text(await peer.call('elicit')), 'cancelled');
        }
    },
    'elicit-url': {
        since: '2025-11-25',
        async work(peer) {
            peer.asked.length = 0;
            peer.elicited = { action: 'accept' };
            assert.equal(text(await peer.call('elicit_url')), 'went there');
            assert.equal(peer.asked[0].params.url, 'https://example.com/sign-in');
        }
    },
    sample: {
        async work(peer) {
            const result = await peer.call('sample', { message: 'ahoy' });
            assert.equal(text(result), 'parrot: ahoy, ahoy');
        }
    },
    roots: {
        async work(peer) {
            assert.equal(text(await peer.call('roots')), 'file:///srv/one file:///srv/two');
        }
    },
    'resource-updated': {
        async work(peer) {
            const uri = 'test://counter';
            const read = async () => (await peer.client.readResource({ uri })).contents[0].text;
            const before = Number(await read());
            const told = () => peer.heard.filter(({ method }) => method === 'notifications/resources/updated');
            peer.heard.length = 0;
            const end = await peer.watch({ resourceSubscriptions: [uri] });
            await peer.call('touch');
            await until(() => told().length === 1);
            assert.equal(told()[0].params.uri, uri);
            assert.equal(await read(), String(before + 1));
            await end();
            await peer.call('touch');
            await peer.call('slow', { steps: 1, ms: 50 });
            assert.equal(told().length, 1, 'notified after the end');
        }
    },
    'tools-changed': {
        async work(peer) {
            const told = () => peer.heard.filter(({ method }) => method === 'notifications/tools/list_changed');
            const has = async () => names((await peer.client.listTools()).tools).includes('extra');
            peer.heard.length = 0;
            const end = await peer.watch({ toolsListChanged: true });
            await peer.call('change_tools');
            await until(() => told().length === 1);
            assert.equal(await has(), true);
            assert.equal(text(await peer.call('extra')), 'not always here');
            await peer.call('change_tools');
            await until(() => told().length === 2);
            assert.equal(await has(), false);
            await end();
        }
    },
    cancel: {
        async work(peer) {
            const before = Number(text(await peer.call('abandoned')));
            const stop = new AbortController();
            const options = { signal: stop.signal, onprogress: () => stop.abort('enough') };
            await refused(peer.call('wait', {}, options));
            await until(async () => Number(text(await peer.call('abandoned'))) === before + 1);
        }
    }
};
