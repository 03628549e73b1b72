// @ts-check
/** Logging in, with each step shown: metadata, registration, PKCE, tokens and their claims. */
import { fill, h, keyed, link, safeLink } from './dom.js';
import { pretty } from './json.js';
import { act, said } from './program.js';
import { listen } from './store.js';

/** @typedef {import('./store.js').Connection} Connection @typedef {import('./store.js').AuthStep} AuthStep */

/** What each member of the address of a login page is for. @type {Record<string, string>} */
const MEMBERS = {
    response_type: 'what the server gives back: a code',
    client_id: 'who asks',
    redirect_uri: 'where the browser returns to: a port of this machine',
    scope: 'what is asked for',
    state: 'ties the answer to this login',
    code_challenge: 'PKCE: the digest of a secret that only this program has',
    code_challenge_method: 'PKCE: how the digest was made',
    resource: 'which server the token is for (RFC 8707)'
};

/** @param {string} body */
function bodyOf(body) {
    if (!body) return null;
    if (body.trim().startsWith('{')) return pretty(body);
    return h('pre', { tabindex: '0' }, body.split('&').join('\n'));
}

/** @param {[string, string][]} headers */
const heads = headers =>
    headers.length ? h('pre', { tabindex: '0' }, headers.map(([name, value]) => `${name}: ${value}`).join('\n')) : null;

/** @param {AuthStep} step */
function stepCard(step) {
    const isGood = step.answer !== null && step.answer.status < 400;
    return h(
        'details.card',
        null,
        h(
            'summary',
            null,
            h('b', null, step.step),
            ' ',
            h('span.mono.small', null, `${step.method} ${step.url}`),
            ' ',
            h(`span.tag.${isGood ? 'good' : 'warn'}`, null, step.answer ? step.answer.status : 'no response')
        ),
        h(
            'div.column',
            null,
            h('b', null, 'Request'),
            heads(step.headers),
            bodyOf(step.body),
            step.answer
                ? [h('b', null, 'Response'), heads(step.answer.headers), bodyOf(step.answer.body)]
                : h('p', null, step.problem)
        )
    );
}

/** The address of a login page, part by part. @param {string} text */
function addressParts(text) {
    const safe = safeLink(text);
    const all = safe ? [...new URL(safe).searchParams] : [];
    return h(
        'div.tablebox',
        { tabindex: '0' },
        h(
            'table',
            null,
            h(
                'tbody',
                null,
                all.map(([name, value]) =>
                    h(
                        'tr',
                        null,
                        h('th', { scope: 'row' }, name),
                        h('td.mono', null, value),
                        h('td.soft', null, MEMBERS[name] ?? '')
                    )
                )
            )
        )
    );
}

/** @param {Connection} connection */
function stateOf(connection) {
    const { login } = connection;
    if (!login)
        return h(
            'p.soft',
            null,
            'Tokens are kept for all commands of this program, in a folder that only you can read.'
        );
    switch (login.state) {
        case 'running':
            return h(
                'div',
                null,
                h('p', null, 'Looking for the authorization server…'),
                h('progress', { 'aria-label': 'logging in' })
            );
        case 'waiting':
            return h(
                'div.column',
                null,
                h('p', null, h('b', null, 'Log in on this page'), ' and come back:'),
                h(
                    'p',
                    null,
                    link(login.url ?? '', 'Open the login page'),
                    ' ',
                    h('span.soft.small', null, `at ${new URL(login.url ?? '').host}`)
                ),
                addressParts(login.url ?? '')
            );
        case 'failed':
            return h(
                'div.card.bad',
                { role: 'alert' },
                h('b', null, login.problem?.what),
                login.problem?.remedy ? h('p', null, `Help: ${login.problem.remedy}`) : null
            );
        case 'cancelled':
            return h('p', null, h('span.tag.warn', null, 'given up'));
        default:
            return h(
                'div.column',
                null,
                h(
                    'p',
                    null,
                    login.isLoggedIn ? h('span.tag.good', null, 'logged in') : 'This server does not require a login.'
                ),
                login.claims
                    ? [h('h2', null, 'Claims of the token'), pretty(JSON.stringify(login.claims))]
                    : login.isLoggedIn
                      ? h('p.soft', null, 'The token is opaque: only its server can read it.')
                      : null
            );
    }
}

/** @param {HTMLElement} main @param {Connection} connection */
export function loginView(main, connection) {
    const number = connection.number;
    const told = h('p.small', { role: 'alert' });
    const state = h('div.column', { 'aria-live': 'polite' });
    const steps = h('div.column');
    const scopes = h('input', {
        type: 'text',
        'aria-label': 'Further scopes',
        placeholder: 'Further scopes, separated by spaces'
    });
    const id = h('input', { type: 'text', 'aria-label': 'Client id', placeholder: 'Client id', autocomplete: 'off' });
    const secret = h('input', {
        type: 'password',
        'aria-label': 'Client secret',
        placeholder: 'Client secret, if it has one',
        autocomplete: 'off'
    });
    const client = h(
        'details',
        null,
        h('summary', null, 'A client that was registered by hand'),
        h('div.row', null, id, secret)
    );
    const run = (/** @type {string} */ what, /** @type {Record<string, unknown>} */ members) => async () => {
        told.textContent = '';
        try {
            await act(what, members);
        } catch (error) {
            told.textContent = said(error);
        }
    };
    const begin = h(
        'button.button.main',
        {
            type: 'button',
            onclick: () =>
                run('login', {
                    connection: number,
                    scopes: scopes.value.split(/\s+/).filter(Boolean),
                    ...(id.value ? { clientId: id.value } : {}),
                    ...(id.value && secret.value ? { clientSecret: secret.value } : {})
                })()
        },
        'Log in'
    );
    const stop = h('button.button', { type: 'button', onclick: run('cancel', { call: `login/${number}` }) }, 'Give up');
    const out = h('button.button', { type: 'button', onclick: run('logout', { connection: number }) }, 'Log out');
    let seen = '';
    const draw = () => {
        const { login, auth } = connection;
        const isBusy = login?.state === 'running' || login?.state === 'waiting';
        begin.disabled = isBusy;
        stop.hidden = !isBusy;
        const text = JSON.stringify(login ?? null);
        if (text !== seen) fill(state, stateOf(connection));
        seen = text;
        keyed(steps, auth.filter(Boolean), it => `${it.number} ${it.url}`, stepCard);
    };
    main.className = '';
    fill(
        main,
        h(
            'div.column',
            null,
            h('h1', null, 'Login'),
            h(
                'div.card.column',
                null,
                h('div.row', null, h('div.grow', null, scopes), begin, stop, out),
                client,
                told,
                state
            ),
            h('h2', null, 'Steps'),
            h('p.soft', null, 'Every request of the login, in order. Secrets are masked.'),
            steps
        )
    );
    draw();
    const end = listen(kinds => {
        if (!state.isConnected) return end();
        if (['login', 'auth', 'forgotten', 'connection'].some(it => kinds.has(it))) draw();
    });
}
