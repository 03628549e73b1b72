// A server that requires a login, and the authorization server that it trusts, on loopback. The person who logs in
// agrees immediately. `start()` returns its address.

import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';

const encode = value => Buffer.from(JSON.stringify(value)).toString('base64url');

const body = async request => {
    let text = '';
    for await (const piece of request) text += piece;
    return text;
};

export async function start() {
    const codes = new Map();
    const tokens = new Set();
    let origin;
    const metadata = () => ({
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        registration_endpoint: `${origin}/register`,
        response_types_supported: ['code'],
        grant_types_supported: ['authorization_code', 'refresh_token'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none', 'client_secret_post'],
        authorization_response_iss_parameter_supported: true,
        scopes_supported: ['notes:read']
    });
    const answers = {
        initialize: () => ({
            protocolVersion: '2025-11-25',
            serverInfo: { name: 'protected', version: '1' },
            capabilities: { tools: {} }
        }),
        ping: () => ({}),
        'tools/list': () => ({ tools: [{ name: 'whoami', inputSchema: { type: 'object' } }] }),
        'tools/call': () => ({ content: [{ type: 'text', text: 'ada' }] })
    };
    const json = (response, status, value, headers = {}) => {
        response.writeHead(status, { 'content-type': 'application/json', ...headers });
        response.end(value === undefined ? undefined : JSON.stringify(value));
    };
    const routes = {
        '/.well-known/oauth-protected-resource/mcp': (_, response) =>
            json(response, 200, { resource: `${origin}/mcp`, authorization_servers: [origin] }),
        '/.well-known/oauth-authorization-server': (_, response) => json(response, 200, metadata()),
        '/register': async (request, response) =>
            json(response, 201, { ...JSON.parse(await body(request)), client_id: 'client-1' }),
        '/authorize': (request, response) => {
            const asked = new URL(request.url, origin).searchParams;
            const code = randomBytes(16).toString('hex');
            codes.set(code, asked);
            const back = new URL(asked.get('redirect_uri'));
            for (const [name, value] of [
                ['code', code],
                ['state', asked.get('state')],
                ['iss', origin]
            ]) {
                back.searchParams.set(name, value);
            }
            response.writeHead(302, { location: back.href });
            response.end();
        },
        '/token': async (request, response) => {
            const form = new URLSearchParams(await body(request));
            const asked = codes.get(form.get('code'));
            codes.delete(form.get('code'));
            const digest = createHash('sha256')
                .update(form.get('code_verifier') ?? '')
                .digest('base64url');
            if (digest !== asked?.get('code_challenge')) return json(response, 400, { error: 'invalid_grant' });
            if (form.get('client_id') === 'by-hand' && form.get('client_secret') !== 'hush')
                return json(response, 401, { error: 'invalid_client' });
            const claims = { iss: origin, sub: 'ada', aud: `${origin}/mcp`, scope: 'notes:read' };
            const token = `${encode({ alg: 'none' })}.${encode(claims)}.${randomBytes(8).toString('base64url')}`;
            tokens.add(token);
            json(response, 200, { access_token: token, token_type: 'Bearer', expires_in: 3600, scope: 'notes:read' });
        },
        '/mcp': async (request, response) => {
            const token = request.headers.authorization?.replace(/^Bearer /, '');
            if (!tokens.has(token)) {
                const challenge = `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
                return json(response, 401, { error: 'unauthorized' }, { 'www-authenticate': challenge });
            }
            if (request.method !== 'POST') return json(response, 405);
            const { id, method } = JSON.parse(await body(request));
            if (id === undefined) return json(response, 202);
            const answer = answers[method];
            const outcome = answer ? { result: answer() } : { error: { code: -32601, message: `no ${method}` } };
            json(response, 200, { jsonrpc: '2.0', id, ...outcome });
        }
    };
    const server = createServer((request, response) => {
        const route = routes[new URL(request.url, origin).pathname];
        Promise.resolve(route ? route(request, response) : json(response, 404, {})).catch(error => {
            console.log(`protected: ${error.message}`);
            response.destroy();
        });
    });
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${server.address().port}`;
    return { url: `${origin}/mcp`, stop: () => server.close() };
}
