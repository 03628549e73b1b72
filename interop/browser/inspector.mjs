// Walks through `bowline inspect` in a real browser, as a person and as an attacker:
// `node inspector.mjs BROWSER BOWLINE EVERYTHING_EXAMPLE PYTHON FASTMCP_SCRIPT PICTURES`.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { chromium } from 'playwright-core';
import { forms } from './form.mjs';
import { apps, extensions, lives, odd, remote, sessions, tabs, until, within } from './views.mjs';

const [browserName, bowline, example, python, fastmcp, pictures] = process.argv.slice(2);
const here = import.meta.dirname;
const PATIENCE_MS = 60_000;
const executablePath = process.env.PATH.split(delimiter).map(folder => join(folder, browserName)).find(existsSync);
const FLAGS = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const AXE = await readFile(join(here, 'node_modules/axe-core/axe.min.js'), 'utf8');

let failures = 0;
async function check(mode, title, run) {
    // A word for the table.
    const name = title.replace(/[ :,’]+/g, '-');
    try {
        await run();
        console.log(`ok ${mode} ${name}`);
    } catch (error) {
        failures++;
        console.log(`not ok ${mode} ${name}: ${String(error.message ?? error).split('\n').slice(0, 6).join(' ')}`);
    }
}

const home = await mkdtemp(join(tmpdir(), 'inspector-'));
/** The program, and the address it prints. */
async function start(...words) {
    const env = { ...process.env, HOME: home, XDG_CONFIG_HOME: home, XDG_RUNTIME_DIR: home, BOWLINE_DATA_DIR: home };
    const child = spawn(bowline, ['inspect', '--port', '0', '--no-browser', ...words], { stdio: ['ignore', 'ignore', 'pipe'], env, cwd: home });
    let said = '';
    const address = await within('the program prints its address', new Promise((resolve, reject) => {
        child.stderr.on('data', data => {
            said += data;
            const found = said.match(/http:\S+#ticket=\w{64}/);
            if (found) resolve(found[0]);
        });
        child.on('exit', code => reject(new Error(`the program ended (${code}): ${said}`)));
    }));
    const stop = () => within('the program ends', new Promise(resolve => { child.once('exit', resolve); child.kill('SIGINT'); })).catch(error => { child.kill('SIGKILL'); throw error; });
    return { address, origin: new URL(address).origin, stop };
}

const browser = await chromium.launch({ executablePath, args: FLAGS });
// The era is given: a probe takes a server that needs longer than a second, as on a busy machine, for a legacy one.
const program = await start('--revision', 'modern', '--', bowline, 'serve', 'example');
const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' });
await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: program.origin });
context.setDefaultTimeout(PATIENCE_MS);
const page = await context.newPage();
const complaints = [];
const foreign = [];
page.on('console', message => { if (message.type() === 'error' && !message.text().includes("directive 'webrtc'")) complaints.push(`${message.text()} ${message.location().url}`); });
page.on('pageerror', error => complaints.push(error.message));
page.on('dialog', dialog => { complaints.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
page.on('request', it => { if (!/^(http:\/\/127\.0\.0\.1:|data:|blob:)/.test(it.url())) foreign.push(it.url()); });

/** Sends a request as something else than the page would. */
const send = (path, { method = 'POST', headers = {}, body = '{}' } = {}) => new Promise((resolve, reject) => {
    const url = new URL(path, program.origin);
    const outgoing = request(url, { method, headers: { 'content-type': 'application/json', ...headers } }, reply => { reply.resume(); reply.on('end', () => resolve(reply)); if (path === '/api/events') { resolve(reply); reply.destroy(); } });
    outgoing.on('error', reject);
    outgoing.end(method === 'GET' ? undefined : body);
});

const go = async hash => { await page.evaluate(to => { location.hash = to; }, hash); };
const number = () => page.evaluate(() => Number(location.hash.match(/^#\/(\d+)/)?.[1] ?? 0));
/** Connects by the form, and waits until it has succeeded. */
async function connect(words, revision = '') {
    await go('#/connect');
    const input = page.getByLabel('Address or command');
    await input.fill(words);
    await page.getByLabel('Protocol').selectOption(revision);
    await page.getByRole('button', { name: 'Connect', exact: true }).first().click();
    // Python takes its time, on a busy machine even more.
    await page.locator('main .tag', { hasText: /^open$/ }).waitFor({ timeout: 60_000 });
    return number();
}
const fieldOf = name => page.locator(`[data-field="${name}"]`);
const outcome = () => page.locator('main .card', { has: page.locator('.tag', { hasText: /^(answered|failed|cancelled)$/ }) }).first();
async function call(connection, tool, fields = {}) {
    await go(`#/${connection}/tools/${encodeURIComponent(tool)}`);
    await page.locator('main .detail h1').waitFor();
    for (const [name, value] of Object.entries(fields)) {
        const field = fieldOf(name);
        await field.locator('select.state').first().selectOption('value');
        await field.locator('input, textarea').first().fill(value);
    }
    await page.getByRole('button', { name: 'Call', exact: true }).click();
}
async function axe(where, it = page) {
    await it.evaluate(AXE);
    const { violations } = await it.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
    assert.deepEqual(violations.map(it => `${where} ${it.id}: ${it.nodes[0].html.slice(0, 160)} ${it.nodes[0].failureSummary?.slice(0, 200)}`), []);
}

/** Waits until nothing is shown that only passes by: what was said, the focus outside of dialogs, what is pointed at. */
async function still() {
    await page.locator('.toast').first().waitFor({ state: 'detached' });
    await page.mouse.move(0, 0);
    await page.evaluate(() => { if (!document.activeElement?.closest('dialog')) document.activeElement?.blur(); });
}

/** Everything that every view must pass: axe in light and dark, nothing hidden drawn, no sideways scrolling at 320 px. */
async function view(mode, name, picture) {
    await check(mode, `${name}: what is hidden is not drawn`, async () => {
        const drawn = await page.evaluate(() => [...document.querySelectorAll('[hidden]')].filter(it => getComputedStyle(it).display !== 'none').map(it => it.className));
        assert.deepEqual(drawn, []);
    });
    for (const scheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme: scheme });
        await page.waitForFunction(it => document.documentElement.dataset.theme === it, scheme);
        await check(mode, `${name}: axe, ${scheme}`, () => axe(name));
        if (picture) await still();
        if (picture) await page.screenshot({ path: join(pictures, `${picture}-${scheme}.png`) });
    }
    await page.emulateMedia({ colorScheme: 'light' });
    await check(mode, `${name}: fits 320 px and 4K`, async () => {
        for (const [width, height] of [[320, 640], [3840, 2160], [1280, 800]]) {
            await page.setViewportSize({ width, height });
            const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
            if (isWide) await page.setViewportSize({ width: 1280, height: 800 });
            assert.ok(!isWide, `${width}: the page scrolls sideways`);
        }
    });

}

// The door.
await check('attack', 'requests without a key are rejected', async () => {
    for (const path of ['/api/do', '/api/events', '/api/ticket']) assert.equal((await send(path)).statusCode, 401);
    assert.equal((await send('/api/do', { headers: { authorization: 'Bearer undefined' } })).statusCode, 401);
    assert.equal((await send('/api/open', { body: '{"ticket":"00"}' })).statusCode, 401);
});
await check('attack', 'foreign origins are rejected, also those of this machine', async () => {
    for (const origin of ['https://evil.test', 'null', 'http://localhost:1', 'http://127.0.0.1:1', program.origin.replace('127.0.0.1', 'localhost')]) {
        assert.equal((await send('/api/open', { headers: { origin } })).statusCode, 403, origin);
        assert.equal((await send('/', { method: 'GET', headers: { origin } })).statusCode, 403, origin);
    }
    for (const site of ['cross-site', 'same-site']) assert.equal((await send('/', { method: 'GET', headers: { 'sec-fetch-site': site } })).statusCode, 403, site);
});
await check('attack', 'a link leads to the page, and to nothing else', async () => {
    const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    const get = async (path, more = {}) => (await send(path, { method: 'GET', headers: { ...link, ...more } })).statusCode;
    for (const site of ['cross-site', 'same-site']) assert.equal(await get('/', { 'sec-fetch-site': site }), 200, site);
    for (const path of ['/page.js', '/index.html', '/?a', '/api/events']) assert.equal(await get(path), 403, path);
    for (const more of [{ origin: 'https://evil.test' }, { origin: 'null' }, { origin: program.origin }, { host: 'evil.test' }, { 'sec-fetch-mode': 'no-cors' }, { 'sec-fetch-mode': 'cors' }, { 'sec-fetch-dest': 'iframe' }, { 'sec-fetch-dest': 'object' }, { 'sec-fetch-dest': 'empty' }]) assert.equal(await get('/', more), 403, JSON.stringify(more));
    assert.equal((await send('/', { headers: link })).statusCode, 403, 'POST');
});
await check('attack', 'names that are rebound are rejected', async () => {
    const { port } = new URL(program.origin);
    for (const host of ['evil.test', `evil.test:${port}`, `127.0.0.1.evil.test:${port}`, '127.0.0.1', `0.0.0.0:${port}`, `localhost:${port}`]) assert.equal((await send('/', { method: 'GET', headers: { host } })).statusCode, 403, host);
});
await check('attack', 'forms of other sites cannot post', async () => {
    assert.equal((await send('/api/open', { headers: { 'content-type': 'text/plain' } })).statusCode, 415);
});
await check('attack', 'every response carries the policy', async () => {
    const { headers } = await send('/', { method: 'GET' });
    assert.match(headers['content-security-policy'], /default-src 'none'; script-src 'self'; .*frame-ancestors 'none'.*require-trusted-types-for 'script'/);
    assert.doesNotMatch(headers['content-security-policy'], /unsafe/);
    assert.equal(headers['x-content-type-options'], 'nosniff');
});

// The first two minutes.
await check('modern', 'the address opens the page, connected', async () => {
    await page.goto(program.address);
    await page.locator('main .tag', { hasText: /^open$/ }).waitFor();
    assert.ok(await page.getByText('modern era', { exact: true }).isVisible());
    await page.getByText('server/discover answered in').waitFor();
    assert.ok(!page.url().includes('ticket'), 'the ticket stays in the address');
});
const weight = await page.evaluate(() => performance.getEntries().filter(it => it.initiatorType !== 'fetch').reduce((sum, it) => sum + (it.decodedBodySize ?? 0), 0));
await check('modern', 'the page weighs less than 300 KB', () => { assert.ok(weight > 100_000 && weight < 300_000, `${weight} bytes`); });
const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
console.log(`first contentful paint ${Math.round(paint)} ms, ${weight} bytes`);
await check('attack', 'the address works once', async () => {
    const ticket = program.address.split('ticket=')[1];
    assert.equal((await send('/api/open', { body: JSON.stringify({ ticket }) })).statusCode, 401);
    const other = await browser.newContext();
    const stranger = await other.newPage();
    await stranger.goto(program.address);
    await stranger.getByText('This page has no key').waitFor();
    await axe('no key', stranger);
    await other.close();
});
await view('modern', 'overview', 'overview');
await check('modern', 'a tool is called, and its exact numbers are shown', async () => {
    await call(1, 'calculator_arithmetic', { expression: '2 + 3 * 4' });
    await outcome().getByText('2 + 3 * 4 = 14').waitFor();
    await outcome().getByText('14.0', { exact: true }).waitFor();
});
await view('modern', 'tools', 'tools');
await check('modern', 'state survives a reload, which shows no other view first', async () => {
    await page.addInitScript(() => new MutationObserver(() => {
        if (document.querySelector('main h1')?.textContent === 'Connect to a server' && location.hash.startsWith('#/1/')) window.sawConnect = true;
    }).observe(document, { childList: true, subtree: true }));
    await page.reload();
    await outcome().getByText('2 + 3 * 4 = 14').waitFor();
    assert.equal(await page.evaluate(() => window.sawConnect), undefined);
    assert.equal(await fieldOf('expression').locator('input').inputValue(), '2 + 3 * 4');
});
await check('modern', 'an invalid draft stays as typed', async () => {
    await page.getByRole('tab', { name: 'JSON' }).first().click();
    const area = page.getByLabel('Arguments as JSON');
    await area.fill('{"expression": "1+1", ');
    await page.getByRole('tab', { name: 'Form' }).click();
    assert.equal(await area.inputValue(), '{"expression": "1+1", ');
    await page.getByText('It stays as you typed it').waitFor();
    await area.fill('{"expression": 12345678901234567890}');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.locator('main .tag', { hasText: /^(answered|failed)$/ }).waitFor();
    await go('#/1/wire?q=12345678901234567890');
    await page.locator('.wire .line', { hasText: 'tools/call' }).first().waitFor();
});
await forms(page, check);
await check('modern', 'a call is copied as a command and as Rust', async () => {
    await go('#/1/tools/calculator_arithmetic');
    for (const [as, expected] of [['command', /^bowline call .*calculator_arithmetic --json .* -- /], ['rust', /call_tool\("calculator_arithmetic"/]]) {
        await page.getByLabel('Copy as').selectOption(as);
        await until(page, `${expected} is copied`, async () => expected.test(await page.evaluate(() => navigator.clipboard.readText())));
    }
});
await check('modern', 'a resource is read', async () => {
    await go('#/1/resources');
    await page.locator('.item').first().click();
    await page.getByRole('button', { name: 'Read' }).click();
    await page.locator('main .tag', { hasText: /^answered$/ }).waitFor();
});
await view('modern', 'resources', 'resources');
await check('modern', 'times stand above the bars', async () => {
    await go('#/1/wire');
    await page.locator('.scale span', { hasText: / s$/ }).first().waitFor();
    const place = it => page.locator(it).first().evaluate(it => [it.getBoundingClientRect().left, it.getBoundingClientRect().width]);
    assert.deepEqual(await place('.scale'), await place('.wire .track'));
    const heights = await page.locator('.wire .line', { hasText: 'subscriptions/listen' }).locator('.track, .track i').evaluateAll(all => all.map(it => it.clientHeight));
    assert.ok(heights[1] <= heights[0] / 2, `what only listens looks like what waits: ${heights}`);
});
await check('modern', 'messages show exact bytes', async () => {
    await go('#/1/wire');
    await page.locator('.wire .line', { hasText: 'calculator_arithmetic' }).first().waitFor();
    assert.ok(!(await page.locator('.bytes').isVisible()), 'an empty message is shown');
    await page.locator('.wire .line', { hasText: 'calculator_arithmetic' }).first().click();
    await page.getByRole('button', { name: 'Exact bytes' }).first().click();
    assert.match(await page.locator('.bytes pre').first().textContent(), /^\{"jsonrpc":"2\.0","id":\d+,"method":"tools\/call"/);
});
await view('modern', 'messages', 'messages');
await page.getByRole('tab', { name: 'Figures' }).click();
await page.locator('.figures td', { hasText: 'tools/call' }).waitFor();
await check('modern', 'what has no answer has no figures, and headings stand over their numbers', async () => {
    const cells = await page.locator('.figures tr', { hasText: 'subscriptions/listen' }).locator('td').allTextContents();
    assert.deepEqual(cells.slice(1), ['1', '0', '1', '–', '–', '–', '–']);
    assert.equal(await page.locator('.figures th').last().evaluate(it => getComputedStyle(it).textAlign), 'right');
});
await view('modern', 'figures', 'figures');
await check('modern', 'the palette opens by keyboard', async () => {
    await page.keyboard.press('Control+k');
    await page.getByRole('option').first().waitFor();
});
await view('modern', 'palette', 'palette');
await check('modern', 'the palette goes anywhere by keyboard', async () => {
    await page.keyboard.type('weather_current');
    await page.keyboard.press('Enter');
    await page.locator('main .detail h1', { hasText: 'Weather' }).waitFor();
    assert.match(page.url(), /#\/1\/tools\/weather_current$/);
});
await check('modern', 'the load test reports percentiles', async () => {
    await go('#/1/check');
    await page.getByRole('button', { name: 'Start' }).click();
    await page.locator('[data-part=load] svg').waitFor();
    await page.locator('[data-part=load] dd', { hasText: /^200$/ }).waitFor();
    assert.deepEqual(await page.locator('.chart .x').allTextContents(), ['p50', 'p90', 'p99']);
    const times = await page.locator('.chart .y').allTextContents();
    assert.ok(times.length > 1 && times.every(it => / ms$/.test(it)), `${times}`);
    const bottom = it => it.evaluate(it => Math.round(it.getBoundingClientRect().bottom));
    assert.ok(Math.abs(await bottom(page.getByRole('button', { name: 'Start' })) - await bottom(page.getByLabel('At once'))) <= 1, 'Start is off the line of the inputs');
});
await check('modern', 'the checks run inside', async () => {
    await page.getByRole('button', { name: 'Run all checks' }).click();
    await page.locator('[data-part=check] .tag', { hasText: /finding|nothing to fix/ }).waitFor({ timeout: 120_000 });
});
await view('modern', 'check', 'check');

// Questions and lists that change, in both eras.
for (const era of ['modern', 'legacy']) {
    let at = 0;
    await check(era, 'connects to our server by a command', async () => {
        at = await connect(example, era);
        await page.getByText(`${era} era`, { exact: true }).first().waitFor();
    });
    await check(era, 'a form of the server is answered', async () => {
        await call(at, 'elicit');
        const card = page.locator('[data-question]').first();
        await card.waitFor();
        if (era === 'modern') {
            await view(era, 'question', 'question');
        }
        for (const state of await card.locator('select.state').all()) await state.selectOption('value');
        for (const choice of await card.locator('[data-field] select:not(.state)').all()) await choice.selectOption({ index: 1 });
        for (const input of await card.locator('input[type=text]').all()) await input.fill((await input.getAttribute('inputmode')) ? '7' : 'Ada');
        await card.getByRole('button', { name: 'Send' }).click();
        await outcome().getByText(/Ada/).first().waitFor();
        await card.waitFor({ state: 'detached' });
    });
    await check(era, 'an address and a sampling wait side by side', async () => {
        await call(at, 'elicit_url');
        await page.locator('[data-question]', { hasText: 'address' }).waitFor();
        await call(at, 'sample', { message: 'hello' });
        await page.locator('[data-question]', { hasText: 'sampling' }).waitFor();
        assert.equal(await page.locator('[data-question]').count(), 2);
        if (era === 'modern') await view(era, 'an address and a sampling');
        const sampling = page.locator('[data-question]', { hasText: 'sampling' });
        await sampling.getByLabel('What the model says').fill('said by a person');
        await sampling.getByRole('button', { name: 'Answer' }).click();
        await outcome().getByText('said by a person').waitFor();
        await page.locator('[data-question]').getByRole('button', { name: 'Decline' }).click();
        await page.locator('[data-question]').waitFor({ state: 'detached' });
    });
    await check(era, 'rules answer a form, until there are none', async () => {
        await go('#/rules');
        const [area, clean] = [page.getByLabel('Rules as JSON'), complaints.length];
        await area.fill('{"form": 1}');
        await page.getByRole('button', { name: 'Use these rules' }).click();
        await page.getByText('unknown field').waitFor();
        // The browser reports the status of what is rejected.
        assert.ok(complaints.splice(clean).every(it => it.includes('status of 422')));
        await area.fill('{"forms": [{ "action": "decline" }]}');
        await page.getByRole('button', { name: 'Use these rules' }).click();
        await page.getByText('These rules answer from now on').waitFor();
        if (era === 'modern') await view(era, 'rules', 'rules');
        await call(at, 'elicit');
        await outcome().getByText(/decline/i).first().waitFor();
        assert.equal(await page.locator('[data-question]').count(), 0);
        await go('#/rules');
        await page.getByRole('button', { name: 'No rules' }).click();
        await page.getByText('Every question waits for you').waitFor();
        assert.equal(await area.inputValue(), '');
    });
    await check(era, 'a call is cancelled', async () => {
        await call(at, 'wait');
        await page.getByRole('button', { name: 'Cancel', exact: true }).click();
        await page.locator('main .tag', { hasText: /^cancelled$/ }).waitFor();
    });
    await check(era, 'lists follow the server', async () => {
        const count = async () => Number(await page.locator('nav.side a', { hasText: /^Tools/ }).locator('.count').textContent());
        const before = await count();
        await call(at, 'change_tools');
        await page.waitForFunction(was => Number([...document.querySelectorAll('nav.side a')].find(it => it.textContent.startsWith('Tools')).querySelector('.count').textContent) !== was, before);
    });
    await check(era, 'calls are kept, and repeated', async () => {
        await go(`#/${at}/calls`);
        await page.locator('main details').first().locator('summary').click();
        const before = await page.locator('main details').count();
        await page.locator('main details', { hasText: 'change_tools' }).first().getByRole('button', { name: 'Repeat', exact: true }).click();
        await page.waitForFunction(was => document.querySelectorAll('main details').length > was, before);
    });
    if (era === 'modern') await view(era, 'calls', 'calls');
    await go(`#/${at}/logs`);
    await page.locator('main h1', { hasText: 'Logs' }).waitFor();
    if (era === 'modern') await view(era, 'logs', 'logs');
    await check(era, 'a prompt is got', async () => {
        await go(`#/${at}/prompts/greet`);
        await fieldOf('name').locator('input').fill('Ada');
        await page.getByRole('button', { name: 'Get', exact: true }).click();
        await outcome().getByText(/Ada/).first().waitFor();
    });
    if (era === 'modern') await view(era, 'prompts', 'prompts');
    await check(era, 'a template is completed by the server, and read', async () => {
        await go(`#/${at}/templates/${encodeURIComponent('test://users/{name}')}`);
        const input = fieldOf('name').locator('input');
        await input.fill('a');
        await fieldOf('name').locator('datalist option[value=ada]').waitFor({ state: 'attached' });
        await input.fill('ada');
        await page.getByRole('button', { name: 'Read', exact: true }).click();
        await outcome().getByText('test://users/ada').first().waitFor();
    });
    await check(era, 'what has no form of its own is edited as JSON, and repeated', async () => {
        await go(`#/${at}/calls`);
        const read = page.locator('main details', { hasText: 'resources/read test://users/ada' }).first();
        await read.locator('summary').first().click();
        await read.getByRole('button', { name: 'Edit and repeat' }).click();
        const area = read.getByLabel('Parameters as JSON');
        assert.equal(await area.inputValue(), '{"uri":"test://users/ada"}');
        await area.fill('{"uri":"test://users/bob"');
        await read.getByRole('button', { name: 'Send' }).click();
        await read.getByText('Not JSON yet').waitFor();
        await area.fill('{"uri":"test://users/bob"}');
        await read.getByRole('button', { name: 'Send' }).click();
        await page.locator('main details', { hasText: 'resources/read test://users/bob' }).first().waitFor();
    });
    if (era === 'modern') await view(era, 'templates', 'templates');
}

// Servers of others.
await check('everything', 'connects, calls and completes', async () => {
    const at = await connect(`${process.execPath} ${join(here, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')} stdio`);
    await call(at, 'get-sum', { a: '1', b: '2' });
    await outcome().getByText('The sum of 1 and 2 is 3.').waitFor();
    await call(at, 'get-tiny-image');
    await outcome().locator('img.media').waitFor();
    await go(`#/${at}/prompts/completable-prompt`);
    await fieldOf('department').locator('input').fill('E');
    await fieldOf('department').locator('datalist option[value=Engineering]').waitFor({ state: 'attached' });
});
for (const era of ['modern', 'legacy']) await check('fastmcp', `connects and calls, ${era}`, async () => {
    const at = await connect(`${python} ${fastmcp} stdio`, era);
    await page.getByText(`${era} era`, { exact: true }).first().waitFor();
    await call(at, 'echo', { message: 'said to Python' });
    await outcome().getByText('said to Python').first().waitFor();
    await call(at, 'sum', { a: '20', b: '22' });
    await outcome().getByText('42').first().waitFor();
});

// What fails is explained in place.
await check('doctor', 'a program that is not there is explained', async () => {
    await go('#/connect');
    await page.getByLabel('Address or command').fill('no-such-program-at-all');
    await page.getByRole('button', { name: 'Connect', exact: true }).first().click();
    await page.locator('.card.bad', { hasText: 'no-such-program-at-all' }).first().waitFor();
    await page.getByText('The doctor’s report').waitFor();
    await page.getByText('Fix:').first().waitFor();
});
await view('doctor', 'failure', 'failure');
await check('doctor', 'what has failed is examined again, and keeps its messages when it is tried again', async () => {
    const at = await number();
    await page.getByRole('button', { name: 'Run the doctor' }).click();
    await page.getByText('Fix:').first().waitFor();
    await page.getByRole('button', { name: 'Connect again' }).click();
    await page.waitForFunction(at => location.hash !== `#/${at}`, at);
    await page.locator('main .tag', { hasText: /^failed$/ }).waitFor();
    const rows = await page.evaluate(async at => (await import('/store.js')).connections.get(at)?.wire.rows.length, at);
    assert.ok(rows > 0, `${rows} messages`);
});
await check('config', 'a pasted configuration is read', async () => {
    await go('#/connect');
    await page.getByLabel('JSON of a client').fill(JSON.stringify({ mcpServers: { mine: { command: bowline, args: ['serve', 'counter'] } } }));
    await page.getByRole('button', { name: 'Read', exact: true }).click();
    await page.getByRole('button', { name: 'Connect mine' }).click();
    await page.locator('main .tag', { hasText: /^open$/ }).waitFor();
});
await check('app', 'the counter’s app is shown, and works', async () => {
    const at = await number();
    await go(`#/${at}/tools`);
    await page.locator('.item').first().waitFor();
    const withApp = await page.evaluate(async () => (await import('/store.js')).connections.get(Number(location.hash.match(/\d+/)[0])).lists.tools.items.find(it => it._meta?.ui?.resourceUri)?.name);
    await call(at, withApp);
    const frame = page.frameLocator('iframe.app');
    await frame.locator('button').first().waitFor();
    assert.notEqual(new URL(await page.locator('iframe.app').getAttribute('src')).origin, program.origin);
});
await view('app', 'app', 'app');
await go('#/connect');
await page.getByText('Connect to a server').first().waitFor();
await view('modern', 'connect', 'connect');

// Servers that attack.
await check('attack', 'a link to a target starts nothing', async () => {
    const before = await page.locator('nav.side .dot').count();
    const [file, seen] = [join(home, 'pwned'), join(home, 'seen')];
    const words = name => `sh -c "touch ${name}"`;
    await go(`#/connect?target=${encodeURIComponent(words(file))}`);
    await page.getByText('A link asks to connect to this server').waitFor();
    await page.locator('pre', { hasText: words(file) }).waitFor();
    assert.equal(await page.locator('nav.side .dot').count(), before);
    await view('attack', 'a link to a target');
    // A command that a person starts afterwards has run; that of the link has not.
    await page.getByLabel('Address or command').fill(words(seen));
    await page.getByRole('button', { name: 'Connect', exact: true }).first().click();
    await page.locator('main .tag', { hasText: /^failed$/ }).waitFor();
    assert.ok(existsSync(seen), 'the test cannot tell whether a command has run');
    assert.ok(!existsSync(file), 'the command of the link has run');
});
await check('attack', 'a hostile server runs no script', async () => {
    const clean = complaints.length;
    const at = await connect(`${process.execPath} ${join(here, 'hostile.mjs')} 0 ${program.origin}`);
    for (const path of ['', 'tools', 'resources', 'wire', 'logs', 'calls']) {
        await go(`#/${at}/${path}`);
        await page.waitForFunction(() => document.querySelector('main')?.childElementCount > 0);
    }
    await call(at, 'attack');
    await outcome().locator('.md-h', { hasText: 'Title' }).first().waitFor();
    await page.getByText(/tries: refused refused/).waitFor();
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator('main a[href^="javascript"], main a[href^="data"], main script').count(), 0);
    assert.equal(await page.locator('main img:not(.media)').count(), 0);
    // What the app tried was reported by the browser; nothing else was.
    const said = complaints.splice(clean).filter(it => !/Content Security Policy|sandbox|violates|Unsafe attempt|Failed to load resource|permission to navigate|directive 'webrtc'/i.test(it));
    assert.deepEqual(said, []);
    assert.deepEqual(foreign.splice(0), []);
});
await check('attack', 'an app that declares the inspector does not get it, and is reported', async () => {
    const findings = page.locator('[data-app] details', { hasText: 'findings' });
    await findings.locator('summary').click();
    assert.equal(await findings.getByText('covers the inspector itself: left out').count(), 3);
});
await check('attack', 'schemas and Markdown of an attacker do not stop the page', async () => {
    const [at, clean] = [await number(), complaints.length];
    for (const name of ['endless', 'branching']) {
        await go(`#/${at}/tools/${name}`);
        await page.locator('main .detail h1', { hasText: name }).waitFor();
        const inputs = await page.locator('main .detail').locator('input, select, textarea').count();
        assert.ok(inputs < 1500, `${inputs} inputs`);
    }
    await go(`#/${at}/tools/attack`);
    await page.getByText(/tries: refused refused/).waitFor();
    complaints.splice(clean);
});
await check('attack', 'the key is not reachable from the second origin', async () => {
    const address = await page.locator('iframe.app').getAttribute('src');
    const reply = await new Promise(resolve => request(address, resolve).end());
    assert.match(reply.headers['content-security-policy'], /^default-src 'none'.*connect-src 'none'.*webrtc 'block'; sandbox allow-scripts allow-forms$/);
    assert.doesNotMatch(reply.headers['content-security-policy'], /allow-same-origin|unsafe-eval|\*/);
    const guess = await new Promise(resolve => request(new URL('/app/0', address), resolve).end());
    assert.equal(guess.statusCode, 404);
});
await check('check', 'what is wrong with a server is found', async () => {
    await go(`#/${await number()}/check`);
    await page.getByRole('button', { name: 'Run all checks' }).click();
    await page.locator('[data-part=check] .tag', { hasText: /^\d+ findings$/ }).waitFor({ timeout: 120_000 });
    await page.locator('[data-part=check] td .tag.bad', { hasText: /^fail$/ }).first().waitFor();
    assert.equal(await page.locator('[data-part=check] td .tag', { hasText: /^(pass|skipped)$/ }).count(), 0);
});
await view('check', 'findings');
await check('logs', 'what a server writes to standard error is shown', async () => {
    const at = await connect(`sh -c "echo it has started >&2; exec ${bowline} serve counter"`);
    await go(`#/${at}/logs`);
    await page.locator('main td', { hasText: 'it has started' }).waitFor();
});
await view('logs', 'logs with rows');
await check('many', '5,000 tools are searched in few rows', async () => {
    const at = await connect(`${process.execPath} ${join(here, 'hostile.mjs')} 5000`);
    await go(`#/${at}/tools`);
    await page.locator('main').getByText('5000 tools').waitFor();
    const took = await page.evaluate(() => {
        const input = document.querySelector('input[type=search]');
        const before = document.querySelectorAll('.item').length;
        const seen = new MutationObserver(() => {});
        seen.observe(document, { childList: true, subtree: true });
        const begun = performance.now();
        input.value = 'tool_4321';
        input.dispatchEvent(new Event('input'));
        const ms = performance.now() - begun;
        const touched = seen.takeRecords().reduce((sum, it) => sum + it.addedNodes.length + it.removedNodes.length, 0);
        return { ms, before, touched, rows: document.querySelectorAll('.item').length, room: document.querySelector('.list .scroll').clientHeight };
    });
    assert.equal(took.rows, 1);
    // The rows that can be seen, and a few around them, go; one row comes, and what is counted is said.
    assert.ok(took.before <= Math.ceil(took.room / 54) + 9, `${took.before} rows`);
    assert.ok(took.touched <= took.before + 3, `${took.touched} nodes were touched, ${took.before} rows`);
    console.log(`5,000 tools: filtered in ${took.ms.toFixed(1)} ms`);
});
await check('many', 'the sidebar cuts connections only when there is no room for all', async () => {
    const cut = () => page.locator('nav.side > .places').first().evaluate(it => it.scrollHeight - it.clientHeight);
    await page.setViewportSize({ width: 1280, height: 3000 });
    assert.equal(await cut(), 0, 'there is room');
    await page.setViewportSize({ width: 1280, height: 500 });
    assert.ok((await cut()) > 0, 'there is none');
    for (const label of ['Sessions', 'Answering rules']) assert.ok(await page.locator('nav.side a', { hasText: label }).evaluate(it => it.getBoundingClientRect().bottom < innerHeight), label);
    assert.ok(await page.locator('nav.side > h2').last().evaluate(it => it.scrollHeight <= it.clientHeight), 'the name of the connection is cut');
    await page.setViewportSize({ width: 1280, height: 800 });
});
const walk = { page, check, connect, go, call, outcome, number, view, home, bowline, program, context, python, fastmcp };
await odd(walk);
await tabs(walk);
await lives(walk);
await sessions(walk);
await extensions(walk);
await remote(walk);
await apps(walk);
await check('all', 'no console error, no foreign request', () => { assert.deepEqual(complaints, []); assert.deepEqual(foreign, []); });
await browser.close();
await program.stop();
await rm(home, { recursive: true, force: true });
process.exit(failures ? 1 : 0);
