// Opens the counter's app in the official host library, in a real browser, and clicks:
// `node app.mjs BROWSER SERVER_URL PICTURES`.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { chromium } from 'playwright-core';
import { importMap, moduleFile } from './modules.mjs';

const FLAGS = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync'
];

/** How long anything may take. */
const PATIENCE_MS = 60_000;

const [browserName, serverUrl, pictures] = process.argv.slice(2);

/** The browser, which the library does not look for. */
const executablePath = process.env.PATH.split(delimiter)
    .map(folder => join(folder, browserName))
    .find(existsSync);

const PAGE = `<!doctype html>
<html lang="en"><head><title>Host</title><link rel="icon" href="data:,">
<style>
  body { margin: 2rem; background: #fff } [data-theme="dark"] body { background: #141413 }
  iframe { display: block; width: 26rem; border: 1px solid #8888; border-radius: 8px }
</style>
<script type="importmap">${await importMap()}</script>
<script type="module" src="/host.mjs"></script></head><body></body></html>`;

/** Passes a request on to the server under test, as if it came from a program. */
function forward(incoming, answer) {
    const { host, origin, referer, ...headers } = incoming.headers;
    const { method } = incoming;
    const outgoing = request(serverUrl, { method, headers }, reply => {
        answer.writeHead(reply.statusCode, reply.headers);
        reply.pipe(answer);
    });
    outgoing.on('error', () => answer.destroy());
    answer.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
}

async function serve(incoming, answer) {
    const { pathname } = new URL(incoming.url, 'http://localhost');
    if (pathname === '/mcp') return forward(incoming, answer);
    const send = (type, body) => answer.writeHead(200, { 'content-type': type }).end(body);
    try {
        if (pathname === '/') return send('text/html; charset=utf-8', PAGE);
        if (pathname === '/host.mjs') {
            return send('text/javascript', await readFile(join(import.meta.dirname, 'host.mjs')));
        }
        if (pathname.startsWith('/npm/')) return send('text/javascript', await moduleFile(pathname.slice(5)));
        throw new Error(`nothing is at ${pathname}`);
    } catch (error) {
        answer.writeHead(404).end(String(error));
    }
}

/** Asserts that an element shows a number soon. */
async function becomes(locator, expected) {
    const until = Date.now() + PATIENCE_MS;
    let text;
    while ((text = await locator.textContent()) !== String(expected)) {
        assert.ok(Date.now() < until, `the value is ${text}, and should be ${expected}`);
        await new Promise(resolve => setTimeout(resolve, 20));
    }
}

/** What an app must do in a host, in this order: each check begins where the last one ended. */
const CHECKS = {
    async open({ page, mode, theme }) {
        await page.goto(page.home);
        await page.waitForFunction(() => window.openApp !== undefined);
        await page.evaluate(([theme, mode]) => window.openApp('get_value', theme, mode), [theme, mode]);
        const { mimeType, revision } = await page.evaluate(() => window.host.seen);
        assert.equal(mimeType, 'text/html;profile=mcp-app');
        assert.equal(revision, mode === 'modern' ? '2026-07-28' : '2025-11-25');
    },
    async value({ value, start }) {
        await becomes(value, start);
    },
    async click({ value, up, start }) {
        await up.click();
        await becomes(value, start + 1);
        await up.click();
        await becomes(value, start + 2);
    },
    async keyboard({ page, value, down, start }) {
        await down.focus();
        await page.keyboard.press('Enter');
        await becomes(value, start + 1);
        await page.keyboard.press('ArrowUp');
        await becomes(value, start + 2);
    },
    async server({ call, start }) {
        assert.equal((await call('get_value')).content[0].text, String(start + 2));
    },
    async others({ call, value, start }) {
        await call('increment');
        await becomes(value, start + 3);
    },
    async model({ page, start }) {
        const { told } = await page.evaluate(() => window.host.seen);
        assert.equal(told.at(-1), `The user set the counter to ${start + 2}.`);
    },
    async size({ page }) {
        const { sizes } = await page.evaluate(() => window.host.seen);
        assert.ok(sizes.length > 0 && sizes.length < 10, `reported ${sizes.length} times: ${sizes}`);
    },
    async theme({ page, app, theme }) {
        const colour = () => app.locator('body').evaluate(body => getComputedStyle(body).backgroundColor);
        await page.screenshot({ path: join(pictures, `counter-${theme}.png`) });
        const before = await colour();
        const other = theme === 'dark' ? 'light' : 'dark';
        await page.evaluate(theme => window.host.bridge.setHostContext({ theme }), other);
        await app.locator(`html[data-theme="${other}"]`).waitFor();
        assert.notEqual(await colour(), before);
    },
    async teardown({ page }) {
        await page.evaluate(() => window.host.bridge.teardownResource({}));
    },
    async console({ problems }) {
        assert.deepEqual(problems, []);
    }
};

/** Makes all checks in one mode, until the first that fails. Returns whether none did. */
async function walk(page, problems, { mode, theme, start }) {
    const app = page.frameLocator('iframe');
    const [up, down] = ['Count up by one', 'Count down by one'].map(name => app.getByRole('button', { name }));
    const call = name => page.evaluate(name => window.host.client.callTool({ name, arguments: {} }), name);
    const seen = { page, problems, mode, theme, start, app, value: app.locator('output'), up, down, call };
    for (const [name, check] of Object.entries(CHECKS)) {
        try {
            await check(seen);
            console.log(`ok ${mode} ${name}`);
        } catch (error) {
            const said = [error?.message ?? error, ...problems].join(' | ');
            console.log(`not ok ${mode} ${name}: ${said.replaceAll(/\s+/g, ' ')}`);
            return false;
        }
    }
    return true;
}

const profile = await mkdtemp(join(tmpdir(), 'bowline-browser-'));
const site = createServer(serve);
await new Promise(resolve => site.listen(0, '127.0.0.1', resolve));
const browser = await chromium.launchPersistentContext(profile, {
    executablePath,
    args: FLAGS,
    headless: true,
    viewport: { width: 520, height: 260 }
});
try {
    const problems = [];
    browser.on('console', message => {
        if (['error', 'warning'].includes(message.type())) problems.push(`${message.type()}: ${message.text()}`);
    });
    browser.on('weberror', error => problems.push(String(error.error())));
    const page = await browser.newPage();
    page.home = `http://127.0.0.1:${site.address().port}/`;
    page.setDefaultTimeout(PATIENCE_MS);
    const passed =
        (await walk(page, problems, { mode: 'modern', theme: 'light', start: 0 })) &&
        (await walk(page, problems, { mode: 'legacy', theme: 'dark', start: 3 }));
    process.exitCode = passed ? 0 : 1;
} finally {
    await browser.close();
    site.closeAllConnections();
    site.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
}
