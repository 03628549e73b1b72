// Views of the inspector beyond tools and messages: sessions, tasks, skills, login, servers over HTTP, and what stays
// where it is while everything changes.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, connect as dial } from 'node:net';
import { join } from 'node:path';
import { start as startProtected } from './protected.mjs';

/** How long a process or a page may take, on a busy machine too. */
const PATIENCE_MS = 60_000;

/** Waits for something that must happen. @template T @param {string} what @param {Promise<T>} work */
export async function within(what, work) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`never: ${what}`)), PATIENCE_MS);
    });
    return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** A port that was free a moment ago. */
const freePort = () =>
    new Promise(resolve => {
        const server = createServer();
        server.listen(0, '127.0.0.1', () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });

const hasEnded = child => child.exitCode !== null || child.signalCode !== null;

/** Waits until a server listens; returns whether it does, and has not ended. */
async function listens(port, child) {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end && !hasEnded(child);) {
        const is = await new Promise(resolve => {
            const socket = dial(port, '127.0.0.1', () => resolve(true));
            socket.on('error', () => resolve(false));
            socket.on('connect', () => socket.end());
        });
        if (is) return !hasEnded(child);
        await new Promise(resolve => setTimeout(resolve, 50));
    }
    return false;
}

/** Starts a server on a port: on another one, if the first was taken meanwhile. */
async function serving(program, wordsFor, more = {}) {
    for (let turn = 0; turn < 5; turn++) {
        const port = await freePort();
        const env = { ...process.env, PORT: String(port), ...more };
        const child = spawn(program, wordsFor(port), { stdio: 'ignore', env });
        child.on('error', () => {});
        if (await listens(port, child)) return { port, child };
        child.kill('SIGKILL');
        if (!hasEnded(child)) break;
    }
    throw new Error(`${program} ${wordsFor('PORT').join(' ')} does not listen`);
}

const isAlive = pid => {
    try {
        process.kill(pid, 0);
        return true;
    } catch {
        return false;
    }
};

/** Waits until something is so. `waitForFunction` takes the promise of an asynchronous function for what it waits for. */
export async function until(page, what, is) {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end;) {
        if (await is()) return;
        await page.waitForTimeout(50);
    }
    assert.fail(`never: ${what}`);
}

/** What closes, stops and stays. */
export async function lives({ page, check, connect, go, call, outcome, home, number, bowline }) {
    /** Puts a draft into the form of the calculator, whatever was there. */
    const form = async text => {
        await go('#/1/tools/calculator_arithmetic');
        await page.getByRole('tab', { name: 'JSON' }).first().click();
        await page.getByLabel('Arguments as JSON').fill(text);
        await page.getByRole('tab', { name: 'Form' }).first().click();
    };
    await check('life', 'closing while connecting ends the process', async () => {
        const file = join(home, 'pid');
        await go('#/connect');
        await page.getByLabel('Address or command').fill(`sh -c "echo $$ > ${file}; exec sleep 600"`);
        await page.getByRole('button', { name: 'Connect', exact: true }).first().click();
        await page.locator('main .tag', { hasText: /^connecting$/ }).waitFor();
        await until(page, 'the process has started', () => existsSync(file));
        const pid = Number(await readFile(file, 'utf8'));
        assert.ok(isAlive(pid), 'the process runs');
        const before = await page.locator('nav.side .dot').count();
        await page.getByRole('button', { name: 'Disconnect' }).click();
        await until(page, 'the process has ended', () => !isAlive(pid));
        await until(
            page,
            'its entry is gone',
            async () => (await page.locator('nav.side .dot').count()) === before - 1
        );
    });
    await check('life', 'a load test is stopped, and its inputs stay as typed', async () => {
        await go('#/1/check');
        const part = page.locator('[data-part=load]');
        await part.getByLabel('Calls', { exact: true }).fill('100000');
        await part.getByLabel('Per second').fill('40');
        await part.getByRole('button', { name: 'Start' }).click();
        await part.locator('dd', { hasText: /^running$/ }).waitFor();
        await part.getByLabel('At once').focus();
        await page.keyboard.press('Control+a');
        await page.keyboard.type('13');
        const done = async () => Number(await part.locator('dd').nth(1).textContent());
        const begun = await done();
        await until(page, 'more calls are done', async () => (await done()) > begun + 20);
        assert.equal(await part.getByLabel('At once').inputValue(), '13');
        assert.ok(await part.getByLabel('At once').evaluate(it => it === document.activeElement), 'the focus moved');
        await part.getByText('when each call was due').waitFor();
        await part.getByRole('button', { name: 'Stop' }).click();
        await part.locator('dd', { hasText: /^stopped$/ }).waitFor();
        await part.getByRole('button', { name: 'Stop' }).waitFor({ state: 'hidden' });
    });
    await check('life', 'a call that may change something is repeated only when its person agrees', async () => {
        const at = await connect(`${bowline} serve counter`, 'modern');
        await call(at, 'increment');
        await outcome().waitFor();
        await go(`#/${at}/check`);
        const part = page.locator('[data-part=load]');
        const choice = part.getByLabel('Call to repeat');
        assert.doesNotMatch(await choice.inputValue(), /increment/, 'what only reads comes first');
        const increment = await choice.locator('option', { hasText: 'increment' }).getAttribute('value');
        await choice.selectOption(increment);
        await part.getByLabel('Calls', { exact: true }).fill('5');
        await part.getByRole('button', { name: 'Start' }).click();
        await part.getByText('does not say that this call only reads: increment').waitFor();
        await part.getByRole('button', { name: 'Do not' }).click();
        await part.getByRole('button', { name: 'Start' }).click();
        await part.getByRole('button', { name: 'Call it 5 times' }).click();
        await part.locator('dd', { hasText: /^done$/ }).waitFor();
        await call(at, 'get_value');
        await outcome().getByText('6', { exact: true }).first().waitFor();
    });
    await check('life', 'what was cancelled is so after a reload', async () => {
        const at = await number();
        const slow = await connect(`${process.execPath} ${join(import.meta.dirname, 'hostile.mjs')}`);
        await call(slow, 'never');
        // Nothing more is said on this connection: only a clock tells that the request hangs.
        await go(`#/${slow}/wire`);
        await page.locator('.wire .line.hang', { hasText: 'never' }).waitFor();
        const width = () => page.locator('.wire .hang .track i').evaluate(it => it.getBoundingClientRect().width);
        const before = await width();
        await until(page, 'its bar grows', async () => (await width()) > before);
        await go(`#/${slow}/tools/never`);
        await page.getByRole('button', { name: 'Cancel', exact: true }).click();
        await page.locator('main .tag', { hasText: /^cancelled$/ }).waitFor();
        await go(`#/${slow}/wire?q=notifications/cancelled`);
        await page.locator('.wire .line', { hasText: 'notifications/cancelled' }).waitFor();
        await go(`#/${slow}/tools/never`);
        await page.reload();
        await page.locator('main .tag', { hasText: /^cancelled$/ }).waitFor();
        await go(`#/${at}`);
    });
    await check('life', 'focus, tabs and open details stay while events come', async () => {
        await go('#/1/tools/calculator_arithmetic');
        const tab = page.getByRole('tab', { name: 'JSON' }).first();
        await tab.click();
        assert.ok(await tab.evaluate(it => it === document.activeElement), 'the tab lost the focus');
        await page.getByRole('tab', { name: 'Form' }).first().click();
        await go('#/1/calls');
        const open = page.locator('main details').first();
        await open.locator('summary').click();
        const link = page.locator('nav.side a', { hasText: 'Messages' });
        await link.focus();
        const count = () => link.locator('.count').textContent();
        const before = await count();
        await page.evaluate(async () =>
            (await import('/program.js')).act('call', { connection: 1, call: `x-${Date.now()}`, method: 'tools/list' })
        );
        await until(page, 'messages are counted', async () => (await count()) !== before);
        assert.ok(await link.evaluate(it => it === document.activeElement), 'the link lost the focus');
        await page.locator('main details', { hasText: 'tools/list' }).first().waitFor();
        assert.equal(await page.locator('main details[open]').count(), 1);
    });
    await check('life', 'an error is one wherever it says so', async () => {
        const at = await connect(`${process.execPath} ${join(import.meta.dirname, 'hostile.mjs')}`);
        await call(at, 'fails early');
        await outcome().locator('.tag.bad', { hasText: 'answered' }).waitFor();
        await call(at, 'quotes an error');
        await outcome().locator('.tag.good', { hasText: 'answered' }).waitFor();
    });
    await check('life', 'a call is named, found again and edited exactly', async () => {
        await form('{}');
        const field = page.locator('[data-field=expression] input');
        await field.fill('6 * 7');
        await page.getByLabel('Named calls').selectOption('+');
        await page.getByLabel('Name of the call').fill('the answer');
        await page.keyboard.press('Enter');
        await field.fill('1');
        await page.reload();
        await page.getByLabel('Named calls').selectOption('=the answer');
        assert.equal(await page.locator('[data-field=expression] input').inputValue(), '6 * 7');
        await page.evaluate(async () =>
            (await import('/program.js')).act(
                'call',
                { connection: 1, call: 'odd', method: 'tools/call' },
                { params: '{"name":"calculator_arithmetic","arguments":{"expression": 1.50}}' }
            )
        );
        await go('#/1/calls');
        await page.locator('main details').first().locator('summary').click();
        await page.locator('main details').first().getByRole('button', { name: 'Edit and repeat' }).click();
        assert.equal(await page.getByLabel('Arguments as JSON').inputValue(), '{"expression": 1.50}');
    });
}

/** What a server must not send, and the page shows all the same. */
export async function odd({ page, check, connect, go, call, outcome, view }) {
    let at = 0;
    await check('odd', 'a list is shown without what is not in it', async () => {
        at = await connect(`${process.execPath} ${join(import.meta.dirname, 'hostile.mjs')}`);
        await go(`#/${at}/tools`);
        await page.getByText('left out what is not an object with a name: 7').waitFor();
        await page.locator('.item', { hasText: 'content is text' }).waitFor();
    });
    for (const [tool, shown] of [
        ['content is text', '"content": "text"'],
        ['content is null', 'null'],
        ['content is odd', '"toString"'],
        ['asks oddly', 'Title'],
        ['odd', 'Title']
    ])
        await check('odd', `a call goes on: ${tool}`, async () => {
            await call(at, tool);
            await outcome().getByText(shown).first().waitFor();
            assert.equal(
                await outcome().locator('img[src*="toString"]').count(),
                0,
                'no image is made of what is none'
            );
        });
    await check('odd', 'a result is held against the output schema', async () => {
        await call(at, 'breaks its promise');
        await outcome().getByText('not what the output schema promises').waitFor();
        await outcome()
            .getByText('n: expected')
            .or(outcome().getByText(/structuredContent.*n/))
            .first()
            .waitFor();
        await call(at, 'keeps its promise');
        await outcome().getByText('is what the output schema promises').waitFor();
    });
    await check('odd', 'what is attached is saved, what is linked is read', async () => {
        await call(at, 'attaches');
        const waiting = page.waitForEvent('download');
        await outcome().getByRole('button', { name: 'Save' }).click();
        const saved = await waiting;
        assert.equal(saved.suggestedFilename(), 'data.bin');
        assert.deepEqual([...(await readFile(await saved.path()))], [0, 1, 2, 255]);
        await outcome().getByRole('button', { name: 'Read' }).click();
        await outcome().locator('pre', { hasText: 'was linked' }).waitFor();
    });
    await check('odd', 'a sampling with tools is answered by using one', async () => {
        await call(at, 'samples with tools');
        const card = page.locator('[data-question]');
        await card.getByText('Which tools to use: required').waitFor();
        await card.locator('summary', { hasText: 'thermometer' }).click();
        await card.locator('pre', { hasText: 'place' }).first().waitFor();
        await card.getByRole('button', { name: 'Use it' }).first().click();
        const area = card.getByLabel('The result as JSON');
        const text = await area.inputValue();
        await area.fill(`${text},`);
        await card.getByRole('button', { name: 'Answer' }).click();
        await card.getByText('Not JSON yet').waitFor();
        await area.fill(text.replace('"input": {}', '"input": {"place": "here"}'));
        await view('odd', 'sampling with tools');
        await card.getByRole('button', { name: 'Answer' }).click();
        await outcome().getByText('toolUse').first().waitFor();
        await outcome().getByText('here').first().waitFor();
    });
    await check('odd', 'what cannot be shown is shown as it came, and the page lives on', async () => {
        await go(`#/${at}/tools/worse`);
        await page.locator('main .detail h1', { hasText: 'worse' }).waitFor();
        for (const path of ['wire', 'logs', 'calls', 'tools', '']) {
            await go(`#/${at}/${path}`);
            await page.waitForFunction(() => document.querySelector('main')?.childElementCount > 0);
            assert.equal(await page.getByText('This view cannot be shown').count(), 0, path);
        }
        assert.equal(await page.getByText('The program has ended').count(), 0);
        await go(`#/${at}/wire?q=toString`);
        await page.locator('.wire .line', { hasText: 'odd' }).first().waitFor();
    });
}

/** What several pages share, and what stays while others change. */
export async function tabs({ page, check, connect, go, home, context, program, bowline, number }) {
    await check('life', 'pages that nobody sees hold no connection, and hear everything later', async () => {
        const hide = (it, isHidden) =>
            it.evaluate(is => {
                Object.defineProperty(document, 'hidden', { value: is, configurable: true });
                document.dispatchEvent(new Event('visibilitychange'));
            }, isHidden);
        const pages = [];
        for (let turn = 0; turn < 8; turn++) {
            const it = await context.newPage();
            pages.push(it);
            await it.goto(`${program.origin}/#/1/tools`);
            await it.locator('.item').first().waitFor();
            await hide(it, true);
        }
        await page.evaluate(async () =>
            (await import('/program.js')).act('call', {
                connection: 1,
                call: `hidden-${Date.now()}`,
                method: 'tools/list'
            })
        );
        const rows = it => it.evaluate(async () => (await import('/store.js')).connections.get(1).wire.rows.length);
        await hide(pages[0], false);
        await until(page, 'both have the same messages', async () => (await rows(page)) === (await rows(pages[0])));
        for (const it of pages) await it.close();
    });
    await check('life', 'what is typed on an overview stays when another server comes', async () => {
        await go('#/1');
        await page.locator('main summary', { hasText: 'Roots' }).click();
        const area = page.getByLabel('Roots, one URI per line');
        await area.fill('file:///srv');
        const place = { command: bowline, args: ['serve', 'counter'], env: { SECRET: 'hunter2' } };
        const other = await page.evaluate(
            async place =>
                (await (await import('/program.js')).act('connect', { place, revision: 'legacy' })).connection,
            place
        );
        const isOpen = async other => (await import('/store.js')).connections.get(other)?.state === 'open';
        await until(page, 'the other server is connected to', () => page.evaluate(isOpen, other));
        assert.equal(await area.inputValue(), 'file:///srv');
        assert.ok(await area.evaluate(it => it === document.activeElement), 'the focus moved');
        const seen = await page.evaluate(async other => {
            const { place, revision } = (await import('/store.js')).connections.get(other);
            return JSON.stringify({ place, revision });
        }, other);
        assert.match(seen, /"SECRET":"…"/);
        assert.match(seen, /"revision":"legacy"/);
        assert.doesNotMatch(seen, /hunter2/);
        await go(`#/${other}`);
        await page.getByRole('button', { name: 'Connect again' }).click();
        await page.waitForFunction(other => !location.hash.startsWith(`#/${other}`), other);
        await page.locator('main .tag', { hasText: /^open$/ }).waitFor();
        await page.locator('main .tag', { hasText: /^legacy era$/ }).waitFor();
        await page.getByRole('button', { name: 'Disconnect' }).click();
        await page.waitForFunction(() => !location.hash.match(/^#\/\d/));
    });
    await check('life', 'what was only looked at lets go', async () => {
        await go('#/1/tools');
        const tools = await page.evaluate(async () =>
            (await import('/store.js')).connections.get(1).lists.tools.items.map(it => it.name)
        );
        // Views that are gone let go when they hear something.
        const count = () =>
            page.evaluate(async () => {
                const { listeners, listen } = await import('/store.js');
                const heard = new Promise(resolve => {
                    const stop = listen(kinds => {
                        if (!kinds.has('call')) return;
                        stop();
                        setTimeout(resolve);
                    });
                });
                const { act } = await import('/program.js');
                await act('call', { connection: 1, call: `look-${Date.now()}`, method: 'tools/list' });
                await heard;
                return listeners.size;
            });
        await go(`#/1/tools/${tools[0]}`);
        const before = await count();
        for (const name of [...tools, tools[0]]) {
            await go(`#/1/tools/${encodeURIComponent(name)}`);
            await page.waitForFunction(
                it => location.hash.endsWith(it) && document.querySelector('main .detail form'),
                encodeURIComponent(name)
            );
        }
        assert.equal(await count(), before);
    });
    await check('attack', 'a link of another page fills in the form, and starts nothing', async () => {
        const other = await context.newPage();
        await other.setContent(
            `<a href="${program.origin}/#/connect?target=${encodeURIComponent('sh -c exit')}">open</a>`
        );
        const before = await page.locator('nav.side .dot').count();
        await other.getByText('open').click();
        await other.getByText('A link asks to connect to this server').waitFor();
        assert.equal(await page.locator('nav.side .dot').count(), before);
        await other.close();
    });
}

/** What an app hears from its host. */
export async function apps({ page, check, connect, go, call, view }) {
    await check('app', 'an app hears of its call, of the theme, of its mode, and of its end', async () => {
        const at = await connect(`${process.execPath} ${join(import.meta.dirname, 'hostile.mjs')}`);
        await go(`#/${at}/apps`);
        await page.locator('.item', { hasText: 'listens' }).click();
        await page.getByRole('button', { name: 'Call', exact: true }).click();
        const log = page.frameLocator('iframe.app').locator('#log');
        const heard = async what => until(page, what, async () => (await log.textContent()).includes(what));
        await heard('ui/notifications/tool-input');
        await heard('ui/notifications/tool-result');
        await heard('host bowline 0.');
        await page.emulateMedia({ colorScheme: 'dark' });
        await heard('theme dark');
        await page.emulateMedia({ colorScheme: 'light' });
        await heard('theme light');
        await page.frameLocator('iframe.app').getByRole('button', { name: 'change' }).click();
        await heard('notifications/tools/list_changed');
        await page.frameLocator('iframe.app').getByRole('button', { name: 'grow' }).click();
        await heard('mode fullscreen');
        await page.getByRole('button', { name: 'Inline' }).click();
        await heard('mode inline');
        await page.frameLocator('iframe.app').getByRole('button', { name: 'link' }).click();
        await page.getByText('The app wants to open').waitFor();
        await page.getByRole('button', { name: 'Do not' }).click();
        await page.frameLocator('iframe.app').getByRole('button', { name: 'file' }).click();
        const waiting = page.waitForEvent('download');
        await page.getByRole('button', { name: 'Save' }).last().click();
        assert.equal(await readFile(await (await waiting).path(), 'utf8'), 'kept');
        await page.frameLocator('iframe.app').getByRole('button', { name: 'loop' }).click();
        await page
            .locator('[data-app] details', { hasText: /\d+ findings?/ })
            .locator('summary')
            .click();
        await page.getByText('it changes its size more than').waitFor();
        await page.frameLocator('iframe.app').getByRole('button', { name: 'flood' }).click();
        await heard('error more than 100 cards wait');
        assert.ok((await page.locator('[data-app] > .column > .card').count()) <= 100);
        const said = () =>
            page.evaluate(
                async () =>
                    [...(await import('/store.js')).calls.values()].filter(it => it.call.startsWith('ask-')).length
            );
        const before = await said();
        await go(`#/${at}/tools`);
        await until(page, 'the app heard that its view ends', async () => (await said()) > before);
        // The last call and its app are there again.
        await go(`#/${at}/apps/listens`);
        await heard('ui/notifications/tool-result');
        await page.getByRole('button', { name: 'Close the app' }).click();
        await page.getByText('The app is closed.').waitFor();
        assert.equal(await page.getByText('ui/resource-teardown was not answered').count(), 0);
    });
    await check('app', 'an app is there while its call runs, and hears that it was cancelled', async () => {
        const at = await page.evaluate(() => Number(location.hash.match(/\d+/)[0]));
        await call(at, 'never, with an app');
        const log = page.frameLocator('iframe.app').locator('#log');
        const heard = async what => until(page, what, async () => (await log.textContent()).includes(what));
        await heard('ui/notifications/tool-input');
        await page.locator('main .tag', { hasText: /^running$/ }).waitFor();
        await page.getByRole('button', { name: 'Cancel', exact: true }).click();
        await heard('ui/notifications/tool-cancelled');
        assert.ok(!(await log.textContent()).includes('tool-result'));
        await page.getByRole('button', { name: 'Close the app' }).click();
        await page.getByText('The app is closed.').waitFor();
    });
    await view('app', 'app closed');
}

/** Sessions that were kept. */
export async function sessions({ page, check, connect, go, call, outcome, home, view, bowline, program }) {
    let saved = '';
    await check('session', 'a session is saved, opened without a connection, and survives a reload', async () => {
        const at = await connect(`${bowline} serve counter`);
        await call(at, 'get_value');
        await outcome().waitFor();
        await go(`#/${at}/wire`);
        const waiting = page.waitForEvent('download');
        await page.getByRole('button', { name: 'Save' }).click();
        saved = await readFile(await (await waiting).path(), 'utf8');
        assert.match(saved, /^\{"kind":"session"/);
        await writeFile(join(home, 'counter.jsonl'), saved);
        await go('#/sessions');
        await page.getByLabel('Open a session file').setInputFiles(join(home, 'counter.jsonl'));
        await page.locator('.wire .line', { hasText: 'get_value' }).first().waitFor();
        const address = page.url();
        await page.reload();
        await page.locator('.wire .line', { hasText: 'get_value' }).first().waitFor();
        assert.equal(page.url(), address);
    });
    await view('session', 'session file');
    await check('session', 'figures, zoom, and the way from a call to its messages', async () => {
        await page.getByRole('tab', { name: 'Figures' }).click();
        await page.locator('.figures td', { hasText: 'tools/call' }).waitFor();
        await page.getByRole('tab', { name: 'Timeline' }).click();
        await page.getByRole('button', { name: 'Zoom in' }).click();
        await page.getByRole('button', { name: 'Whole session' }).click();
        await go('#/1/tools/calculator_arithmetic');
        if (await page.getByLabel('Arguments as JSON').isVisible()) {
            await page.getByLabel('Arguments as JSON').fill('{}');
            await page.getByRole('tab', { name: 'Form' }).first().click();
        }
        await call(1, 'calculator_arithmetic', { expression: '40 + 2' });
        await outcome().getByText('40 + 2 = 42').waitFor();
        await outcome().getByRole('link', { name: 'Messages' }).click();
        await page.locator('.bytes pre', { hasText: '40 + 2' }).first().waitFor();
        assert.ok((await page.locator('.wire .line').count()) < 6, 'only what happened during the call');
    });
    await check('session', 'two sessions, and a session and a server, are compared', async () => {
        await go('#/sessions');
        const value = async name =>
            page.getByLabel('Before').locator('option', { hasText: name }).first().getAttribute('value');
        const file = await value('(file)');
        await page.getByLabel('Before').selectOption(file);
        await page.getByLabel('After').selectOption(file);
        await page.getByRole('button', { name: 'Compare' }).click();
        await page.getByText('nothing differs').waitFor();
        await page.getByLabel('After').selectOption('1');
        await page.getByRole('button', { name: 'Compare' }).click();
        await page.locator('.tag', { hasText: /^\d+ differences$/ }).waitFor();
    });
    await check('session', 'a session is replayed and served again', async () => {
        const option = await page
            .getByLabel('Session', { exact: true })
            .locator('option', { hasText: '(file)' })
            .first()
            .getAttribute('value');
        await page.getByLabel('Session', { exact: true }).selectOption(option);
        const server = await page
            .getByLabel('Server to replay against')
            .locator('option', { hasText: /counter/i })
            .last()
            .getAttribute('value');
        await page.getByLabel('Server to replay against').selectOption(server);
        await page.getByRole('button', { name: 'Replay' }).click();
        await page.getByText(/Sent again: \d+ requests/).waitFor();
        const waiting = page.waitForEvent('download');
        await page.getByRole('button', { name: 'HAR' }).click();
        const har = JSON.parse(await readFile(await (await waiting).path(), 'utf8'));
        assert.equal(har.log.version, '1.2');
        await page.getByRole('button', { name: 'Serve it again' }).click();
        await page.locator('main .tag', { hasText: /^open$/ }).waitFor();
    });
    await go('#/sessions');
    await view('session', 'sessions', 'sessions');
    await check('session', 'a ticket pasted over the address of an open page is used', async () => {
        const fresh = await page.evaluate(async () => (await import('/program.js')).ticket());
        const key = await page.evaluate(() => localStorage.getItem('bowline-key'));
        await page.evaluate(address => {
            location.hash = new URL(address).hash;
        }, fresh);
        await until(page, 'the page has another key', async () => {
            const now = await page.evaluate(() => localStorage.getItem('bowline-key')).catch(() => key);
            return now !== key;
        });
        await page.locator('nav.side .dot').first().waitFor();
        assert.ok(!page.url().includes('ticket') && page.url().startsWith(program.origin));
    });
    await check('session', '100,000 messages draw few rows', async () => {
        const lines = [saved.split('\n')[0]];
        for (let at = 0; at < 50_000; at++) {
            lines.push(
                `{"kind":"message","at":${at / 100},"direction":"sent","message":{"jsonrpc":"2.0","id":${at},"method":"tools/call","params":{"name":"t${at}"}}}`
            );
            lines.push(
                `{"kind":"message","at":${at / 100 + 0.005},"direction":"received","message":{"jsonrpc":"2.0","id":${at},"result":{}}}`
            );
        }
        const file = join(home, 'large.jsonl');
        await writeFile(file, lines.join('\n'));
        await go('#/sessions');
        await page.getByLabel('Open a session file').setInputFiles(file);
        // A debug build reads these lines slowly, and this is not what is measured.
        await page.getByText('50,001 of 50,001').waitFor({ timeout: 120_000 });
        const frames = await page.evaluate(async () => {
            const box = document.querySelector('.wire .scroll');
            let worst = 0;
            let most = 0;
            let nodes = 0;
            let drawn = 0;
            const seen = new MutationObserver(() => {});
            seen.observe(box, { childList: true, subtree: true });
            for (let at = 0, last = performance.now(); at < 60; at++) {
                box.scrollTop += 20_000;
                await new Promise(requestAnimationFrame);
                worst = Math.max(worst, performance.now() - last);
                most = Math.max(most, box.querySelectorAll('.line').length);
                nodes = Math.max(nodes, document.querySelectorAll('*').length);
                drawn = Math.max(
                    drawn,
                    seen.takeRecords().reduce((sum, it) => sum + it.addedNodes.length, 0)
                );
                last = performance.now();
            }
            return { worst, most, nodes, drawn, room: Math.ceil(box.clientHeight / 26) + 9 };
        });
        assert.ok(frames.most > 5 && frames.most < 300, `${frames.most} rows`);
        // What a frame costs: no more rows than can be seen, with a few around them, are there or are drawn.
        const { room } = frames;
        assert.ok(frames.most <= room && frames.drawn <= room, `${JSON.stringify(frames)}`);
        assert.ok(frames.nodes < 20 * room + 500, `${frames.nodes} elements`);
        console.log(
            `100,000 messages: ${frames.most} rows drawn at most, longest frame ${Math.round(frames.worst)} ms`
        );
    });
}

/** Tasks and skills. */
export async function extensions({ page, check, connect, go, call, home, view, bowline }) {
    for (const era of ['modern', '2025-11-25']) {
        await check(era, 'a call becomes a task, which is looked at and cancelled', async () => {
            const at = await connect(`${bowline} serve counter`, era);
            await go(`#/${at}/tools/long_task`);
            if (era !== 'modern') await page.getByLabel('as a task').check();
            await call(at, 'long_task', { steps: '500' });
            await page.locator('main .tag', { hasText: /^(running|answered)$/ }).waitFor();
            await go(`#/${at}/tasks`);
            const task = page.locator('[data-task]').first();
            await task.waitFor();
            await task.getByRole('button', { name: 'Get', exact: true }).click();
            await task.locator('.tag', { hasText: /^answered$/ }).waitFor();
            await task.getByRole('button', { name: 'Ask to cancel' }).click();
            await task
                .locator('.tag', { hasText: /^cancelled$/ })
                .first()
                .waitFor();
        });
    }
    await view('modern', 'tasks', 'tasks');
    await check('modern', 'a skill is listed, read and verified', async () => {
        const folder = join(home, 'skills', 'greeting');
        await mkdir(folder, { recursive: true });
        await writeFile(
            join(folder, 'SKILL.md'),
            '---\nname: greeting\ndescription: How to greet\n---\n# Greeting\nSay **hello**.\n'
        );
        await writeFile(join(folder, 'words.txt'), 'hello\n');
        const at = await connect(`${bowline} serve --skills ${join(home, 'skills')}`, 'modern');
        await go(`#/${at}/skills`);
        await page.locator('.item', { hasText: 'greeting' }).click();
        await page.getByRole('button', { name: 'Read the instructions' }).click();
        await page.locator('.tag', { hasText: /^verified$/ }).waitFor();
        await page.locator('.md strong', { hasText: 'hello' }).waitFor();
        await page.getByRole('button', { name: /words\.txt/ }).click();
        await page.locator('pre', { hasText: /^hello/ }).waitFor();
    });
    await view('modern', 'skills', 'skills');
}

/** Servers at a URL, and logins. */
export async function remote({
    page,
    check,
    connect,
    go,
    call,
    outcome,
    view,
    bowline,
    context,
    python,
    fastmcp,
    home
}) {
    const script = join(import.meta.dirname, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
    const [{ port, child: server }, { port: other, child: everything }, { port: third, child: ofPython }] =
        await Promise.all([
            serving(bowline, port => ['serve', 'example', '--http', `127.0.0.1:${port}`]),
            serving(process.execPath, () => [script, 'streamableHttp']),
            serving(python, port => [fastmcp, 'http', String(port)])
        ]);
    for (const era of ['modern', 'legacy']) {
        await check(era, 'a server over HTTP is called, its heads are shown, and it is copied as curl', async () => {
            const at = await connect(`http://127.0.0.1:${port}/mcp`, era);
            await call(at, 'calculator_arithmetic', { expression: '3 * 3' });
            await outcome().getByText('3 * 3 = 9').waitFor();
            await page.getByLabel('Copy as').selectOption('curl');
            const expected = era === 'modern' ? 'mcp-method: tools/call' : 'mcp-session-id';
            const copied = () => page.evaluate(() => navigator.clipboard.readText());
            await until(page, `${expected} is copied`, async () => (await copied()).includes(expected));
            await go(`#/${at}/wire?q=POST`);
            await page.getByLabel('HTTP heads').check();
            await page.locator('.wire .line', { hasText: 'POST' }).first().waitFor();
        });
    }
    await check('everything', 'over HTTP it is called, and the session is named in the heads', async () => {
        const at = await connect(`http://127.0.0.1:${other}/mcp`);
        await call(at, 'echo', { message: 'over HTTP' });
        await outcome().getByText('Echo: over HTTP').waitFor();
    });
    await check('tap', 'a tap that runs is found, watched live, and ends', async () => {
        const { port: tapped, child: tap } = await serving(
            bowline,
            to => ['tap', `http://127.0.0.1:${port}/mcp`, '--http', `127.0.0.1:${to}`],
            { HOME: home, XDG_CONFIG_HOME: home, XDG_RUNTIME_DIR: home, BOWLINE_DATA_DIR: home }
        );
        const at = await connect(`http://127.0.0.1:${tapped}/mcp`, 'modern');
        await go('#/connect');
        await page.getByRole('button', { name: 'Watch Tap' }).click();
        await page.waitForFunction(() => /^#\/\d+\/wire$/.test(location.hash));
        const watched = await page.evaluate(() => location.hash);
        await call(at, 'calculator_arithmetic', { expression: '5 * 5' });
        await outcome().getByText('5 * 5 = 25').waitFor();
        await go(watched);
        await page.locator('.wire .line', { hasText: 'calculator_arithmetic' }).first().waitFor();
        tap.kill('SIGINT');
        await page.locator('nav.side .dot.closed').first().waitFor();
    });
    for (const era of ['modern', 'legacy']) {
        await check('fastmcp', `over HTTP it is called, ${era}`, async () => {
            const at = await connect(`http://127.0.0.1:${third}/mcp`, era);
            await page.getByText(`${era} era`, { exact: true }).first().waitFor();
            await call(at, 'echo', { message: `${era} to Python` });
            await outcome().getByText(`${era} to Python`).first().waitFor();
        });
    }
    const guarded = await startProtected();
    await check('login', 'each step is shown, and the server opens', async () => {
        await go('#/connect');
        await page.getByLabel('Address or command').fill(guarded.url);
        await page.getByLabel('Protocol').selectOption('2025-11-25');
        await page.getByRole('button', { name: 'Connect', exact: true }).first().click();
        await page.getByText('This server requires a login.').waitFor();
        await page.getByRole('link', { name: 'Log in' }).click();
        await page.getByRole('button', { name: 'Log in' }).click();
        const link = page.getByRole('link', { name: 'Open the login page' });
        await link.waitFor();
        await page.locator('td', { hasText: 'PKCE: the digest' }).first().waitFor();
        const [tab] = await Promise.all([context.waitForEvent('page'), link.click()]);
        await page.locator('.tag', { hasText: /^logged in$/ }).waitFor();
        await tab.close();
        await page.locator('pre', { hasText: '"ada"' }).waitFor();
        const steps = await page.locator('main details summary').allTextContents();
        for (const path of ['oauth-protected-resource', 'oauth-authorization-server', '/register', '/token'])
            assert.ok(
                steps.some(it => it.includes(path)),
                `${path} in ${steps}`
            );
        const token = page.locator('main details', { has: page.locator('summary', { hasText: 'token request' }) });
        await token.locator('summary').click();
        await token.locator('pre', { hasText: 'access_token' }).waitFor();
        assert.ok(!(await token.textContent()).includes('eyJ'), 'a token is in the page');
    });
    await view('login', 'login', 'login');
    await check('login', 'the server is called after the login, and logged out of', async () => {
        const at = await page.evaluate(() => Number(location.hash.match(/\d+/)[0]));
        await call(at, 'whoami');
        await outcome().getByText('ada').first().waitFor();
        // A login on an open connection opens it anew: the server may allow more now.
        await page.evaluate(async at => {
            window.was = (await import('/store.js')).connections.get(at).info;
        }, at);
        await go(`#/${at}/login`);
        await page.getByLabel('Further scopes').fill('notes:write');
        // A login that is given up leaves the one before.
        await page.getByRole('button', { name: 'Log in' }).click();
        await page.getByRole('link', { name: 'Open the login page' }).waitFor();
        await page.getByRole('button', { name: 'Give up' }).click();
        await page.locator('.tag', { hasText: /^given up$/ }).waitFor();
        await connect(guarded.url, '2025-11-25');
        await go(`#/${at}/login`);
        await page.getByLabel('Further scopes').fill('notes:write');
        await page.getByRole('button', { name: 'Log in' }).click();
        const again = page.getByRole('link', { name: 'Open the login page' });
        await again.waitFor();
        const [tab] = await Promise.all([context.waitForEvent('page'), again.click()]);
        const isAnew = async at => {
            const it = (await import('/store.js')).connections.get(at);
            return it.state === 'open' && it.info !== window.was;
        };
        await until(page, 'it is opened anew', () => page.evaluate(isAnew, at));
        await tab.close();
        const { kinds, times } = await page.evaluate(async at => {
            const lines = (await import('/store.js')).connections.get(at).wire.lines.map(it => JSON.parse(it));
            return { kinds: lines.map(it => it.kind), times: lines.map(it => it.at) };
        }, at);
        assert.equal(kinds.filter(it => it === 'session').length, 1, 'one session, opened twice');
        assert.equal(kinds.filter(it => it === 'end').length, 2, 'each connection but the last has ended');
        const last = kinds.lastIndexOf('end');
        assert.ok(
            times.slice(last).every(it => it >= times[last]),
            `one clock: ${times}`
        );
        await go(`#/${at}`);
        await page.locator('main .tag', { hasText: /^open$/ }).waitFor();
        await call(at, 'whoami');
        await outcome().getByText('ada').first().waitFor();
        await go(`#/${at}/login`);
        await page.getByRole('button', { name: 'Log out' }).click();
        await page.locator('.tag', { hasText: /^logged in$/ }).waitFor({ state: 'detached' });
    });
    await check('login', 'a client that was registered by hand registers nothing', async () => {
        await page.getByText('A client that was registered by hand').click();
        await page.getByLabel('Client id').fill('by-hand');
        await page.getByLabel('Client secret').fill('hush');
        await page.getByRole('button', { name: 'Log in' }).click();
        const link = page.getByRole('link', { name: 'Open the login page' });
        await link.waitFor();
        await page.locator('td', { hasText: /^by-hand$/ }).waitFor();
        const [tab] = await Promise.all([context.waitForEvent('page'), link.click()]);
        await page.locator('.tag', { hasText: /^logged in$/ }).waitFor();
        await tab.close();
        const steps = await page.locator('main details summary').allTextContents();
        assert.ok(!steps.some(it => it.includes('/register')), `${steps}`);
        assert.ok(!(await page.locator('main').textContent()).includes('hush'), 'the secret is in the page');
    });
    for (const child of [server, everything, ofPython]) child.kill();
    guarded.stop();
}
