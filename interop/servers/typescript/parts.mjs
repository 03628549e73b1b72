// What both TypeScript servers offer, for both major versions of the SDK. The other
// servers in this folder offer the same things under the same names.

import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';

export const COUNTER = 'test://counter';
const USERS = ['ada', 'alan', 'grace'];

/** The counters of the process, shared by all its sessions. */
export const counts = { touched: 0, abandoned: 0, ended: 0 };

let hasExtra = false;

const text = value => ({ content: [{ type: 'text', text: String(value) }] });
const startingWith = value => USERS.filter(name => name.startsWith(value));

export const FORM = {
    type: 'object',
    properties: {
        name: { type: 'string', title: 'Name' },
        count: { type: 'integer', minimum: 1, default: 1 }
    },
    required: ['name']
};
export const QUESTION = 'What would you like?';

/** A tool's text for the user's answer. */
export function answered({ action, content }) {
    if (action !== 'accept') {
        return text(action === 'decline' ? 'declined' : 'cancelled');
    }
    return text(`${content.name}: ${content.count}`);
}

/** A tool's text for the model's answer. */
export const sampled = ({ model, content }) => text(`${model}: ${content.text}`);

/** A tool's text for the client's roots. */
export const rooted = ({ roots }) => text(roots.map(({ uri }) => uri).join(' '));

/** The request to the model. */
export const prompt = message => ({
    messages: [{ role: 'user', content: { type: 'text', text: message } }],
    maxTokens: 100
});

/**
 * Adds the parts to a server.
 *
 * `line` is what differs between the versions of the SDK:
 *
 * - `completable`, `ResourceTemplate`: as exported
 * - `signal(context)`: the cancellation signal
 * - `report(context, progress)`: reports progress
 * - `log(context, level, data)`: logs
 * - `ask`, `sample`, `roots`: handlers of the tools that ask
 * - `touched()`, `toolsChanged()`: notify subscribers
 */
export function furnish(server, line) {
    addTools(server, line);
    addQuestions(server, line);
    server.registerResource('static', 'test://static', { mimeType: 'text/plain' }, async ({ href }) => ({
        contents: [{ uri: href, mimeType: 'text/plain', text: 'always the same' }]
    }));
    server.registerResource('counter', COUNTER, {}, async () => ({
        contents: [{ uri: COUNTER, text: String(counts.touched) }]
    }));
    const template = new line.ResourceTemplate('test://users/{name}', {
        list: undefined,
        complete: { name: startingWith }
    });
    server.registerResource('users', template, {}, async ({ href }, { name }) => ({
        contents: [{ uri: href, text: `user ${name}` }]
    }));
    const argsSchema = z.object({ name: line.completable(z.string(), startingWith) });
    server.registerPrompt('greet', { argsSchema: line.shape(argsSchema) }, async ({ name }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}.` } }]
    }));
}

function addTools(server, line) {
    const add = (name, input, work) => server.registerTool(name, { inputSchema: z.object(input) }, work);
    add('echo', { message: z.string() }, async ({ message }) => text(message));
    const sum = {
        inputSchema: z.object({ a: z.int(), b: z.int() }),
        outputSchema: z.object({ total: z.int() })
    };
    server.registerTool('sum', sum, async ({ a, b }) => ({
        ...text(a + b),
        structuredContent: { total: a + b }
    }));
    add('fail', {}, async () => ({ ...text('there is no luck today'), isError: true }));
    add('slow', { steps: z.int(), ms: z.int() }, async ({ steps, ms }, context) => {
        for (let step = 1; step <= steps; step += 1) {
            await sleep(ms);
            await line.report(context, { progress: step, total: steps, message: `step ${step}` });
        }
        return text(`${steps} steps`);
    });
    add('wait', {}, async (_, context) => {
        const signal = line.signal(context);
        signal.addEventListener('abort', () => {
            counts.abandoned += 1;
        });
        await line.report(context, { progress: 1 });
        await sleep(60_000, undefined, { signal });
        return text('nobody stopped it');
    });
    add('abandoned', {}, async () => text(counts.abandoned));
    add('ended', {}, async () => text(counts.ended));
    add('log', {}, async (_, context) => {
        for (const level of ['info', 'warning', 'error']) {
            await line.log(context, level, `a message of level ${level}`);
        }
        return text('logged');
    });
    add('touch', {}, async () => {
        counts.touched += 1;
        await line.touched();
        return text(counts.touched);
    });
    const extra = add('extra', {}, async () => text('not always here'));
    if (!hasExtra) {
        extra.disable();
    }
    add('change_tools', {}, async () => {
        hasExtra = !hasExtra;
        extra.update({ enabled: hasExtra });
        line.toolsChanged?.();
        return text('changed');
    });
}

function addQuestions(server, line) {
    const add = (name, input, work) => server.registerTool(name, { inputSchema: z.object(input) }, work);
    add('ask', {}, (_, context) => line.ask(context));
    add('sample', { message: z.string() }, ({ message }, context) => line.sample(context, message));
    add('roots', {}, (_, context) => line.roots(context));
}

/** `stdio`, or the port to listen on. */
export function place() {
    const [kind, port] = process.argv.slice(2);
    return kind === 'http' ? Number(port) : undefined;
}
