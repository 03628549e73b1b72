// Walks a server with the official TypeScript client, version 1:
// `node walk-v1.mjs [--suite NAME] <server command… or URL>`.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ListRootsRequestSchema
} from '@modelcontextprotocol/sdk/types.js';
import { finish, parse, transport, walk } from './checks.mjs';
import { SUITES } from './ready.mjs';

const TRANSPORTS = {
    stdio: StdioClientTransport,
    http: StreamableHTTPClientTransport,
    sse: SSEClientTransport
};

async function open(server) {
    const capabilities = { elicitation: { form: {}, url: {} }, roots: {}, sampling: {} };
    const client = new Client({ name: 'walk', version: '1.0.0' }, { capabilities });
    const peer = {
        client,
        heard: [],
        asked: [],
        elicited: { action: 'decline' },
        call: (name, args = {}, options = {}) =>
            client.callTool({ name, arguments: args }, undefined, options),
        isMissing: error => error.code === -32002,
        async watch({ resourceSubscriptions = [] }) {
            for (const uri of resourceSubscriptions) {
                await client.subscribeResource({ uri });
            }
            return async () => {
                for (const uri of resourceSubscriptions) {
                    await client.unsubscribeResource({ uri });
                }
            };
        }
    };
    client.fallbackNotificationHandler = async notification => {
        peer.heard.push(notification);
    };
    client.setRequestHandler(ElicitRequestSchema, async request => {
        peer.asked.push(request);
        return peer.elicited;
    });
    client.setRequestHandler(CreateMessageRequestSchema, async ({ params }) => {
        const { text } = params.messages[0].content;
        const content = { type: 'text', text: `${text}, ${text}` };
        return { model: 'parrot', role: 'assistant', content, stopReason: 'endTurn' };
    });
    client.setRequestHandler(ListRootsRequestSchema, async () => ({
        roots: [{ uri: 'file:///srv/one', name: 'one' }, { uri: 'file:///srv/two' }]
    }));
    const connection = transport(server, TRANSPORTS);
    const set = connection.setProtocolVersion?.bind(connection);
    connection.setProtocolVersion = revision => {
        peer.revision = revision;
        set?.(revision);
    };
    await client.connect(connection);
    return peer;
}

await walk('legacy', parse(process.argv.slice(2), SUITES), open);
finish();
