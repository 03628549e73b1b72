// A server with the official TypeScript SDK, version 1: `node server-v1.mjs stdio`, or
// `node server-v1.mjs http <port>`.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import {
    InMemoryTaskMessageQueue,
    InMemoryTaskStore
} from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js';
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
    CreateMessageResultSchema,
    ElicitResultSchema,
    ListRootsResultSchema,
    SubscribeRequestSchema,
    UnsubscribeRequestSchema
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { answered, COUNTER, counts, FORM, furnish, place, prompt, QUESTION, rooted, sampled } from './parts.mjs';

/** A server for one client. */
function build() {
    const capabilities = {
        logging: {},
        resources: { subscribe: true },
        tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } }
    };
    const options = {
        capabilities,
        instructions: 'Try every tool once.',
        taskStore: new InMemoryTaskStore(),
        taskMessageQueue: new InMemoryTaskMessageQueue()
    };
    const server = new McpServer({ name: 'interop', version: '1.0.0' }, options);
    const wanted = new Set();
    server.server.setRequestHandler(SubscribeRequestSchema, async ({ params }) => {
        wanted.add(params.uri);
        return {};
    });
    server.server.setRequestHandler(UnsubscribeRequestSchema, async ({ params }) => {
        wanted.delete(params.uri);
        return {};
    });
    furnish(server, {
        completable,
        ResourceTemplate,
        shape: schema => schema.shape,
        signal: ({ signal }) => signal,
        async report({ _meta, sendNotification }, progress) {
            if (_meta?.progressToken !== undefined) {
                const params = { progressToken: _meta.progressToken, ...progress };
                await sendNotification({ method: 'notifications/progress', params });
            }
        },
        log: ({ sessionId }, level, data) => server.sendLoggingMessage({ level, data }, sessionId),
        async ask({ sendRequest }) {
            const params = { message: QUESTION, requestedSchema: FORM };
            return answered(await sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema));
        },
        async sample({ sendRequest }, message) {
            const request = { method: 'sampling/createMessage', params: prompt(message) };
            return sampled(await sendRequest(request, CreateMessageResultSchema));
        },
        async roots({ sendRequest }) {
            return rooted(await sendRequest({ method: 'roots/list' }, ListRootsResultSchema));
        },
        async touched() {
            if (wanted.has(COUNTER)) {
                await server.server.sendResourceUpdated({ uri: COUNTER });
            }
        }
    });
    addTasks(server);
    return server;
}

/** Tools that are tasks, as 2025-11-25 has them. */
function addTasks(server) {
    const add = (name, inputSchema, taskSupport, work) => {
        const config = { inputSchema, execution: { taskSupport } };
        server.experimental.tasks.registerToolTask(name, config, {
            async createTask(input, { taskStore, taskRequestedTtl, sendRequest }) {
                const task = await taskStore.createTask({ ttl: taskRequestedTtl ?? 60_000, pollInterval: 50 });
                const { taskId } = task;
                const ask = async params => {
                    await taskStore.updateTaskStatus(taskId, 'input_required');
                    const related = { relatedTask: { taskId } };
                    const answer = await sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema, related);
                    await taskStore.updateTaskStatus(taskId, 'working');
                    return answer;
                };
                // It begins as `working`, and one that was cancelled takes no result.
                sleep(20)
                    .then(() => work(input, ask))
                    .then(result => taskStore.storeTaskResult(taskId, 'completed', result))
                    .catch(() => {});
                return { task };
            },
            getTask: (_, { taskId, taskStore }) => taskStore.getTask(taskId),
            getTaskResult: (_, { taskId, taskStore }) => taskStore.getTaskResult(taskId)
        });
    };
    add('long', { ms: z.int() }, 'optional', async ({ ms }) => {
        await sleep(ms, undefined, { ref: false });
        return { content: [{ type: 'text', text: 'long enough' }] };
    });
    add('long_ask', {}, 'required', async (_, ask) => {
        return answered(await ask({ mode: 'form', message: QUESTION, requestedSchema: FORM }));
    });
}

const sessions = new Map();

async function open() {
    const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: id => sessions.set(id, transport),
        onsessionclosed: id => {
            counts.ended += 1;
            sessions.delete(id);
        }
    });
    await build().connect(transport);
    return transport;
}

const port = place();
if (port === undefined) {
    await build().connect(new StdioServerTransport());
    // The timers of the SDK's store would keep the process alive until all tasks expire.
    process.stdin.once('end', () => setTimeout(() => process.exit(0), 1000));
} else {
    const listener = createServer(async (request, response) => {
        const id = request.headers['mcp-session-id'];
        const transport = id === undefined ? await open() : sessions.get(id);
        if (transport === undefined) {
            response.writeHead(404).end();
            return;
        }
        await transport.handleRequest(request, response);
    });
    listener.listen(port, '127.0.0.1');
}
