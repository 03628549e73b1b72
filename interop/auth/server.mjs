/**
 * An authorization server on loopback: npm's `oidc-provider`, configured like a public one, with a
 * user who consents immediately.
 *
 * It prints its port and exits when its standard input ends. What a test needs beyond the protocol
 * is under `/control`: issued tokens, token lifetimes, other keys, and invalid tokens.
 */

import { createHmac, createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { createServer } from 'node:http';

import Provider from 'oidc-provider';

/** Settings that a test may change at run time. */
const settings = {
    /** The user who logs in, or null. */
    account: 'alice',
    /** Whether every DPoP proof must have a nonce. */
    wantsNonce: false,
    /** By address: `format` (`jwt` or `opaque`), `ttl` in seconds, `alg`. */
    resources: {}
};

/** Event counters, and all secrets so far. */
const counts = { registrations: 0, logins: 0, codes: 0, refreshes: 0, refusals: 0, keyFetches: 0 };
const secrets = new Set();
let issued = {};

const keys = { own: [], old: [], foreign: makeKeys('foreign') };
const machineKey = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const machineSecret = randomBytes(24).toString('base64url');
const nonceSecret = randomBytes(32);
const cookieKey = randomBytes(16).toString('hex');

/** The server's storage, which outlives key rotations. */
const memory = new Map();

let rotations = 0;
let issuer;
let provider;
let answer;

function makeKeys(name) {
    const pairs = {
        RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
        ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' })
    };
    return Object.entries(pairs).map(([alg, { privateKey }]) => ({ alg, kid: `${name}-${alg}`, privateKey }));
}

/** The storage for one kind of object. */
function makeShelf(kind) {
    const all = () => [...memory].filter(([name]) => name.startsWith(`${kind} `));
    const pick = async want => all().find(([, kept]) => want(kept))?.[1];
    return {
        upsert: async (id, kept) => void memory.set(`${kind} ${id}`, kept),
        find: async id => memory.get(`${kind} ${id}`),
        findByUid: uid => pick(kept => kept.uid === uid),
        findByUserCode: code => pick(kept => kept.userCode === code),
        consume: async id => void (memory.get(`${kind} ${id}`).consumed = Math.floor(Date.now() / 1000)),
        destroy: async id => void memory.delete(`${kind} ${id}`),
        revokeByGrantId: async grantId => {
            for (const [name] of all().filter(([, kept]) => kept.grantId === grantId)) {
                memory.delete(name);
            }
        }
    };
}

function makeProvider() {
    const published = [...keys.own, ...keys.old];
    const machine = {
        client_secret: machineSecret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: []
    };
    const next = new Provider(issuer, {
        adapter: makeShelf,
        clients: [
            { ...machine, client_id: 'machine' },
            {
                ...machine,
                client_id: 'machine-key',
                client_secret: undefined,
                token_endpoint_auth_method: 'private_key_jwt',
                jwks: { keys: [machineKey.publicKey.export({ format: 'jwk' })] }
            }
        ],
        clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
        clientBasedCORS: () => false,
        cookies: { keys: [cookieKey] },
        features: {
            clientCredentials: { enabled: true },
            devInteractions: { enabled: false },
            dPoP: { enabled: true, nonceSecret, requireNonce: () => settings.wantsNonce },
            introspection: { enabled: true, allowedPolicy: (_, client) => client.clientId === 'machine' },
            registration: { enabled: true },
            resourceIndicators: { enabled: true, getResourceServerInfo: (_, resource) => resourceServer(resource) },
            revocation: { enabled: true, allowedPolicy: (_, client, token) => token.clientId === client.clientId }
        },
        findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
        interactions: { url: (_, { uid }) => `/interaction/${uid}` },
        jwks: {
            keys: published.map(({ alg, kid, privateKey }) => ({
                ...privateKey.export({ format: 'jwk' }),
                alg,
                kid,
                use: 'sig'
            }))
        },
        pkce: { required: () => true },
        rotateRefreshToken: true,
        scopes: ['openid', 'offline_access'],
        ttl: {
            AccessToken: (_, token) => token.resourceServer?.accessTokenTTL ?? 60,
            ClientCredentials: (_, token) => token.resourceServer?.accessTokenTTL ?? 60,
            Grant: 3600,
            Interaction: 600,
            RefreshToken: 3600,
            Session: 3600
        }
    });
    next.use(watch);
    next.on('grant.error', () => (counts.refusals += 1));
    next.on('server_error', (_, error) => console.error(error));
    return next;
}

function resourceServer(resource) {
    const { format, ttl, alg = 'RS256' } = settings.resources[resource] ?? {};
    return {
        scope: 'notes:read notes:write',
        audience: resource,
        accessTokenTTL: ttl ?? 60,
        accessTokenFormat: format ?? 'jwt',
        jwt: { sign: { alg } }
    };
}

/** Keeps what goes over the wire in confidence. */
async function watch(context, next) {
    await next();
    const { body, oidc } = context;
    const keep = value => typeof value === 'string' && value && secrets.add(value);
    if (oidc?.route === 'token') {
        for (const name of ['code', 'code_verifier', 'refresh_token', 'client_secret', 'client_assertion']) {
            keep(oidc.params?.[name]);
        }
        keep(body?.access_token);
        keep(body?.refresh_token);
        if (body?.access_token) {
            issued = body;
            counts.codes += oidc.params.grant_type === 'authorization_code' ? 1 : 0;
            counts.refreshes += oidc.params.grant_type === 'refresh_token' ? 1 : 0;
        }
    } else if (oidc?.route === 'registration' && body?.client_id) {
        counts.registrations += 1;
        keep(body.client_secret);
        keep(body.registration_access_token);
    } else if (oidc?.route === 'authorization' || oidc?.route === 'resume') {
        keep(oidc.params?.state);
    } else if (oidc?.route === 'jwks') {
        counts.keyFetches += 1;
    }
}

/** A person at a page: logs in and agrees, or does not. */
async function interact(request, response) {
    const details = await provider.interactionDetails(request, response);
    if (!settings.account) {
        const error = { error: 'access_denied', error_description: 'the person said no' };
        return provider.interactionFinished(request, response, error);
    }
    if (details.prompt.name === 'login') {
        counts.logins += 1;
        return provider.interactionFinished(request, response, { login: { accountId: settings.account } });
    }
    const { accountId } = details.session;
    const before = details.grantId && (await provider.Grant.find(details.grantId));
    const grant = before || new provider.Grant({ accountId, clientId: details.params.client_id });
    const { missingOIDCScope, missingResourceScopes } = details.prompt.details;
    if (missingOIDCScope) {
        grant.addOIDCScope(missingOIDCScope.join(' '));
    }
    for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
        grant.addResourceScope(resource, scopes.join(' '));
    }
    const grantId = await grant.save();
    return provider.interactionFinished(request, response, { consent: { grantId } });
}

const encode = value => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

/** A token that `oidc-provider` would not give out, signed with its keys. */
function mint({ claims = {}, header = {}, key = 'own', name = key, seal }) {
    const pick = whose => keys[whose].find(({ alg }) => alg === header.alg) ?? keys[whose][0];
    const { alg, privateKey } = pick(key);
    const { kid } = pick(name);
    const now = Math.floor(Date.now() / 1000);
    const standard = { iss: issuer, sub: 'alice', client_id: 'machine', iat: now, exp: now + 60, scope: 'notes:read' };
    const head = encode({ typ: 'at+jwt', alg, kid, ...header });
    const content = `${head}.${encode({ ...standard, ...claims })}`;
    if (seal === 'none') {
        return `${content}.`;
    }
    if (seal === 'public') {
        // The mistake that this is for: a public key taken for a secret.
        const secret = createPublicKey(privateKey).export({ format: 'pem', type: 'spki' });
        return `${content}.${createHmac('sha256', secret).update(content).digest('base64url')}`;
    }
    const how = alg === 'ES256' ? { key: privateKey, dsaEncoding: 'ieee-p1363' } : privateKey;
    return `${content}.${sign('sha256', Buffer.from(content), how).toString('base64url')}`;
}

const CONTROLS = {
    /** Changes settings. */
    set: ({ resources = {}, ...changed }) => {
        Object.assign(settings.resources, resources);
        Object.assign(settings, changed);
        return {};
    },
    state: () => ({ counts, issued, secrets: [...secrets] }),
    credentials: () => ({
        secret: machineSecret,
        key: machineKey.privateKey.export({ format: 'pem', type: 'pkcs8' })
    }),
    mint: wanted => {
        const token = mint(wanted);
        secrets.add(token);
        return { token };
    },
    /** New keys to sign with; the old ones stay published for a while, or do not. */
    rotate: ({ keep = false }) => {
        keys.old = keep ? keys.own : [];
        keys.own = makeKeys(`key-${(rotations += 1)}`);
        provider = makeProvider();
        answer = provider.callback();
        return {};
    },
    /** Loses everything, as a server does that is set up anew. */
    lose: () => {
        memory.clear();
        return {};
    },
    /** Withdraws one access token, and nothing that belongs to it. */
    destroy: async ({ token }) => {
        await (await provider.AccessToken.find(token)).destroy();
        return {};
    }
};

async function control(request, response) {
    const chunks = await request.toArray();
    const work = CONTROLS[request.url.slice('/control/'.length)];
    const said = await work(JSON.parse(Buffer.concat(chunks).toString() || '{}'));
    response.setHeader('content-type', 'application/json').end(JSON.stringify(said));
}

const server = createServer(async (request, response) => {
    try {
        if (request.url.startsWith('/control/')) {
            await control(request, response);
        } else if (request.url.startsWith('/interaction/')) {
            await interact(request, response);
        } else {
            await answer(request, response);
        }
    } catch (error) {
        console.error(error);
        response.writeHead(500).end(String(error));
    }
});

server.listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    issuer = `http://127.0.0.1:${port}`;
    CONTROLS.rotate({});
    console.log(port);
});
process.stdin.resume().on('end', () => process.exit());
