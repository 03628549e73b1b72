// A server with the official TypeScript SDK, version 2, in both eras: `node server-v2.mjs stdio`, or
// `node server-v2.mjs http <port>`.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import {
    completable,
    createMcpHandler,
    inputRequired,
    isLegacyRequest,
    McpServer,
    ResourceTemplate
} from '@modelcontextprotocol/server';
import { loadSkills } from '@modelcontextprotocol/server/ext/skills/node';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { answered, COUNTER, counts, FORM, furnish, place, prompt, QUESTION, rooted, sampled } from './parts.mjs';

/** Asks once, and continues with the answer; in the legacy era the SDK asks immediately. */
const asking = (question, finish) => context => {
    const answer = context.mcpReq.inputResponses?.answer;
    return answer === undefined ? inputRequired({ inputRequests: { answer: question } }) : finish(answer);
};

const skills = await loadSkills(join(import.meta.dirname, 'skills'), { strict: true });

/** Notifies listeners over HTTP in the modern era. */
let notifier;

/** A server for one client, or for one request. */
function build({ era }) {
    const capabilities = { logging: {}, resources: { subscribe: true, listChanged: true } };
    const options = { capabilities, instructions: 'Try every tool once.' };
    const server = new McpServer({ name: 'interop', version: '1.0.0' }, options);
    skills.attach(server);
    const wanted = new Set();
    if (era === 'legacy') {
        server.server.setRequestHandler('resources/subscribe', async ({ params }) => {
            wanted.add(params.uri);
            return {};
        });
        server.server.setRequestHandler('resources/unsubscribe', async ({ params }) => {
            wanted.delete(params.uri);
            return {};
        });
    }
    furnish(server, {
        completable,
        ResourceTemplate,
        shape: schema => schema,
        signal: ({ mcpReq }) => mcpReq.signal,
        async report({ mcpReq }, progress) {
            const progressToken = mcpReq._meta?.progressToken;
            if (progressToken !== undefined) {
                const params = { progressToken, ...progress };
                await mcpReq.notify({ method: 'notifications/progress', params });
            }
        },
        log: ({ mcpReq }, level, data) => mcpReq.log(level, data),
        ask: asking(inputRequired.elicit({ message: QUESTION, requestedSchema: FORM }), answered),
        sample: (context, message) => asking(inputRequired.createMessage(prompt(message)), sampled)(context),
        roots: asking(inputRequired.listRoots(), rooted),
        async touched() {
            if (notifier) {
                notifier.resourceUpdated(COUNTER);
            }
            if (wanted.has(COUNTER) || (era === 'modern' && !notifier)) {
                await server.server.sendResourceUpdated({ uri: COUNTER });
            }
        },
        toolsChanged: () => notifier?.toolsChanged()
    });
    return server;
}

const sessions = new Map();

async function open() {
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: id => sessions.set(id, transport),
        onsessionclosed: id => {
            counts.ended += 1;
            sessions.delete(id);
        }
    });
    await build({ era: 'legacy' }).connect(transport);
    return transport;
}

/** The session that a request of the legacy era belongs to. */
async function serveLegacy(request, response, body) {
    const id = request.headers['mcp-session-id'];
    const transport = id === undefined ? await open() : sessions.get(id);
    if (transport === undefined) {
        response.writeHead(404).end();
        return;
    }
    await transport.handleRequest(request, response, body);
}

async function read(request) {
    const parts = [];
    for await (const part of request) {
        parts.push(part);
    }
    return parts.length === 0 ? undefined : JSON.parse(Buffer.concat(parts).toString());
}

const port = place();
if (port === undefined) {
    serveStdio(build);
} else {
    const handler = createMcpHandler(build, { legacy: 'reject' });
    notifier = handler.notify;
    const modern = toNodeHandler(handler);
    const listener = createServer(async (request, response) => {
        const body = await read(request);
        const isLegacy = await isLegacyRequest(await toWebRequest(request, body), body);
        await (isLegacy ? serveLegacy : modern)(request, response, body);
    });
    listener.listen(port, '127.0.0.1');
}
