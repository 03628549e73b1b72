// Walks a server with the official TypeScript client, version 2, in both eras and every revision:
// `node walk-v2.mjs [--suite NAME] <server command… or URL>`.

import assert from 'node:assert/strict';
import {
    Client,
    ResourceNotFoundError,
    SSEClientTransport,
    StreamableHTTPClientTransport,
    SUPPORTED_PROTOCOL_VERSIONS
} from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { finish, parse, transport, walk } from './checks.mjs';
import { SUITES } from './ready.mjs';

const TRANSPORTS = {
    stdio: StdioClientTransport,
    http: StreamableHTTPClientTransport,
    sse: SSEClientTransport
};

const NOTIFICATIONS = [
    'notifications/message',
    'notifications/resources/updated',
    'notifications/tools/list_changed'
];

/** Opens clients with these options, which must negotiate this revision. */
function opener(revision, options) {
    return async server => {
        const capabilities = { elicitation: { form: {}, url: {} }, roots: {}, sampling: {} };
        const client = new Client({ name: 'walk', version: '2.0.0' }, { capabilities, ...options });
        const peer = {
            client,
            heard: [],
            asked: [],
            elicited: { action: 'decline' },
            call: (name, args = {}, requestOptions = {}, meta = undefined) =>
                client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, requestOptions),
            isMissing: error => error instanceof ResourceNotFoundError,
            watch: filter => watch(client, filter)
        };
        for (const method of NOTIFICATIONS) {
            client.setNotificationHandler(method, notification => {
                peer.heard.push(notification);
            });
        }
        client.setRequestHandler('elicitation/create', async request => {
            peer.asked.push(request);
            return peer.elicited;
        });
        client.setRequestHandler('sampling/createMessage', async ({ params }) => {
            const { text } = params.messages[0].content;
            const content = { type: 'text', text: `${text}, ${text}` };
            return { model: 'parrot', role: 'assistant', content, stopReason: 'endTurn' };
        });
        client.setRequestHandler('roots/list', async () => ({
            roots: [{ uri: 'file:///srv/one', name: 'one' }, { uri: 'file:///srv/two' }]
        }));
        await client.connect(transport(server, TRANSPORTS));
        peer.revision = client.getNegotiatedProtocolVersion();
        assert.equal(peer.revision, revision);
        return peer;
    };
}

/** The modern era has listen requests; the legacy era has subscriptions, and announces list changes unasked. */
async function watch(client, filter) {
    if (client.getProtocolEra() === 'modern') {
        const subscription = await client.listen(filter);
        assert.deepEqual(subscription.honoredFilter, filter);
        return () => subscription.close();
    }
    for (const uri of filter.resourceSubscriptions ?? []) {
        await client.subscribeResource({ uri });
    }
    return async () => {
        for (const uri of filter.resourceSubscriptions ?? []) {
            await client.unsubscribeResource({ uri });
        }
    };
}

const server = parse(process.argv.slice(2), SUITES);
const isSse = server.target[0].endsWith('/sse');
// HTTP+SSE: only the first and the last legacy revision; the others are walked over other transports.
const between = isSse ? [] : ['2025-03-26', '2025-06-18'];
for (const revision of ['2024-11-05', ...between, '2025-11-25']) {
    const others = SUPPORTED_PROTOCOL_VERSIONS.filter(it => it !== revision);
    await walk(revision, server, opener(revision, { supportedProtocolVersions: [revision, ...others] }));
}
const modern = '2026-07-28';
// HTTP+SSE ended with the legacy era.
if (isSse) {
    finish();
}
await walk('auto', server, opener(modern, { versionNegotiation: { mode: 'auto' } }));
await walk(modern, server, opener(modern, { versionNegotiation: { mode: { pin: modern } } }));
finish();
