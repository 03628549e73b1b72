// Measures a page that explores servers, from the start of its program to the first answer of a tool:
// `node figures.mjs BROWSER bowline|inspector ROUNDS PROGRAM ARGS…` prints the medians, one `name value` per line.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { chromium } from 'playwright-core';
import { within } from './views.mjs';

const [browserName, kind, rounds, program, ...words] = process.argv.slice(2);
const executablePath = process.env.PATH.split(delimiter)
    .map(folder => join(folder, browserName))
    .find(existsSync);
const FLAGS = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-component-update', '--disable-sync'];

/** Calls the tool `get_value` of the counter as a person would, and waits for the answer. */
const FIRST_CALL = {
    async bowline(page) {
        await page.getByRole('link', { name: /^Tools/ }).click();
        await page.locator('.item', { hasText: 'Value' }).click();
        await page.getByRole('button', { name: 'Call', exact: true }).click();
        await page.locator('main .tag', { hasText: /^answered$/ }).waitFor();
    },
    async inspector(page) {
        await page.getByRole('switch').first().click({ force: true });
        await page.getByText('Tools', { exact: true }).first().click();
        await page.getByText('get_value').first().click();
        await page.getByRole('button', { name: 'Execute Tool' }).click();
        await page.getByText('Results', { exact: true }).first().waitFor();
    }
};

/** A process and all that it has started, with the memory of each in bytes: what it shares is divided. */
async function memory(pid) {
    const parents = new Map();
    for (const name of await readdir('/proc')) {
        const status = /^\d+$/.test(name) && (await readFile(`/proc/${name}/status`, 'utf8').catch(() => ''));
        if (status) parents.set(Number(name), Number(status.match(/^PPid:\s+(\d+)/m)[1]));
    }
    const family = new Set([pid]);
    for (let size = 0; size !== family.size;) {
        size = family.size;
        for (const [child, parent] of parents) if (family.has(parent)) family.add(child);
    }
    let bytes = 0;
    for (const one of family) {
        const command = await readFile(`/proc/${one}/cmdline`, 'utf8').catch(() => '');
        // The server that is explored is not part of what explores it.
        if (/^[^\0]*bowline\0serve\0counter\0$/.test(command)) continue;
        const rollup = await readFile(`/proc/${one}/smaps_rollup`, 'utf8').catch(() => '');
        bytes += 1024 * Number(rollup.match(/^Pss:\s+(\d+)/m)?.[1] ?? 0);
    }
    return bytes;
}

/** The program, when it has printed its address. */
async function start() {
    const home = await mkdtemp(join(tmpdir(), 'figures-'));
    const env = {
        ...process.env,
        HOME: home,
        XDG_CONFIG_HOME: home,
        BOWLINE_DATA_DIR: home,
        MCP_AUTO_OPEN_ENABLED: 'false'
    };
    const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'pipe'], env, cwd: home, detached: true });
    const ended = new Promise(resolve => child.once('exit', resolve));
    const address = await within(
        'the program prints its address',
        new Promise((resolve, reject) => {
            let said = '';
            const hear = data => {
                said += data;
                const found = said.match(/http:\/\/\S+(?:ticket|TOKEN)=\w+/);
                if (found) resolve(found[0]);
            };
            child.stdout.on('data', hear);
            child.stderr.on('data', hear);
            child.on('exit', code => reject(new Error(`${program} ended (${code}): ${said}`)));
        })
    );
    const stop = async () => {
        // Its whole family: npm's launchers leave theirs behind.
        process.kill(-child.pid, 'SIGKILL');
        await ended;
        await rm(home, { recursive: true, force: true, maxRetries: 5 });
    };
    return { address, home, pid: child.pid, stop };
}

/** One round, in a browser that has seen nothing yet. */
async function round() {
    const browser = await chromium.launch({ executablePath, args: FLAGS });
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(60_000);
    const foreign = new Set();
    page.on('request', it => {
        if (!/^(http:\/\/(127\.0\.0\.1|localhost):|data:|blob:)/.test(it.url())) foreign.add(new URL(it.url()).host);
    });
    const begun = performance.now();
    const running = await start();
    try {
        await page.goto(running.address);
        await FIRST_CALL[kind](page);
        const call = performance.now() - begun;
        const seen = await page.evaluate(() => ({
            paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
            weight: performance
                .getEntries()
                .filter(it => it.initiatorType !== 'fetch' && it.initiatorType !== 'xmlhttprequest')
                .reduce((sum, it) => sum + (it.decodedBodySize ?? 0), 0)
        }));
        const memoryOf = await memory(running.pid);
        const more = kind === 'bowline' ? await large(page, running.home) : {};
        return { call, ...seen, memory: memoryOf, foreign: foreign.size, ...more };
    } finally {
        await browser.close();
        await running.stop();
    }
}

/** A session of 100,000 messages that scrolls, and 5,000 tools that are searched. */
async function large(page, home) {
    const lines = await page.evaluate(async () => [(await import('/store.js')).connections.get(1).wire.opening]);
    for (let at = 0; at < 50_000; at++) {
        const line = (direction, more) =>
            `{"kind":"message","at":${at / 100},"direction":"${direction}","message":{"jsonrpc":"2.0","id":${at},${more}}}`;
        lines.push(line('sent', `"method":"tools/call","params":{"name":"t${at}"}`), line('received', '"result":{}'));
    }
    const file = join(home, 'large.jsonl');
    await writeFile(file, lines.join('\n'));
    await page.evaluate(() => {
        location.hash = '#/sessions';
    });
    await page.getByLabel('Open a session file').setInputFiles(file);
    await page.getByText('50,001 of 50,001').waitFor();
    const frame = await page.evaluate(async () => {
        const box = document.querySelector('.wire .scroll');
        let worst = 0;
        await new Promise(requestAnimationFrame);
        for (let at = 0, last = performance.now(); at < 120; at++) {
            box.scrollTop += 10_000;
            await new Promise(requestAnimationFrame);
            worst = Math.max(worst, performance.now() - last);
            last = performance.now();
        }
        return worst;
    });
    const place = { command: process.execPath, args: [join(import.meta.dirname, 'hostile.mjs'), '5000'] };
    await page.evaluate(async place => {
        const { connection } = await (await import('/program.js')).act('connect', { place });
        location.hash = `#/${connection}/tools`;
    }, place);
    await page.locator('main').getByText('5000 tools').waitFor();
    const filter = await page.evaluate(() => {
        const input = document.querySelector('input[type=search]');
        const begun = performance.now();
        input.value = 'tool_4321';
        input.dispatchEvent(new Event('input'));
        return performance.now() - begun;
    });
    return { frame, filter };
}

const all = [];
for (let turn = 0; turn < Number(rounds); turn++) all.push(await round());
const median = name => all.map(it => it[name]).sort((a, b) => a - b)[all.length >> 1];
for (const name of Object.keys(all[0])) console.log(`${name} ${median(name)}`);
