// @ts-check
/** The host of apps: each in a frame of another origin, and the `ui/*` dialect between the two. */
import { ask } from './ask.js';
import { bytesOf } from './content.js';
import { download, fill, h, many, safeLink, textOf } from './dom.js';
import { act, said } from './program.js';
import { calls, listen, program } from './store.js';

/** @typedef {import('./store.js').Connection} Connection @typedef {import('./store.js').Call} Call */
/** @typedef {{[name: string]: any}} Params */
/** @typedef {{address: string, ui: Params, findings: string[]}} Served */

/** The app of a tool. @param {any} tool @returns {string | undefined} */
export const uriOf = tool => tool._meta?.ui?.resourceUri ?? tool._meta?.['ui/resourceUri'];
/** @param {any} tool */
const isForApp = tool => (tool._meta?.ui?.visibility ?? ['model', 'app']).includes('app');

const MODES = ['inline', 'fullscreen'];
const HIGHEST = 4000;
/** An app that changes its size more often than this in a second chases its own tail. */
const MOST_SIZES = 30;
/** How long an app may take to say that it is there, to let go, and to keep its person from another view. */
const PATIENCE_MS = 5000;
const TEARDOWN_MS = 5000;
const LEAVE_MS = 1000;
const MOST_NOTES = 100;
/** The apps that are shown. @type {Set<Host>} */
const hosts = new Set();

/** Tells the apps that are shown that their view ends, and waits a little until they agree. */
export async function leave() {
    const all = [...hosts].filter(it => it.frame.isConnected);
    const answered = Promise.all(all.map(it => it.tearDown('the person went to another view')));
    if (all.length) await Promise.race([answered, new Promise(resolve => setTimeout(resolve, LEAVE_MS))]);
    for (const it of hosts) it.end();
}

/**
 * Calls a method of the server for an app. @param {Connection} connection @param {string} method
 * @param {unknown} params
 */
const relay = async (connection, method, params) => JSON.parse(await ask(connection.number, method, params));

/** An app in its frame, and what passes between the two. */
class Host {
    /** @param {Connection} connection @param {any} tool @param {Call} call @param {Served} served */
    constructor(connection, tool, call, served) {
        this.connection = connection;
        this.tool = tool;
        this.call = call;
        this.ui = served.ui;
        const wanted = {
            camera: 'camera',
            microphone: 'microphone',
            geolocation: 'geolocation',
            clipboardWrite: 'clipboard-write'
        };
        const allow = Object.entries(wanted)
            .filter(([name]) => served.ui.permissions?.[name])
            .map(([, it]) => it)
            .join('; ');
        this.frame = h('iframe.app', {
            src: served.address,
            sandbox: 'allow-scripts allow-forms',
            title: `App of ${tool.name}`,
            allow,
            referrerpolicy: 'no-referrer'
        });
        this.said = h('div.column');
        this.log = h('ul.small.soft');
        this.findings = h('ul');
        this.fold = h('details.card', { hidden: true }, h('summary', null, 'Findings'), this.findings);
        for (const it of served.findings) this.find(it);
        this.isReady = false;
        this.hasEnded = false;
        /** @type {(() => void) | undefined} */
        this.stop = undefined;
        this.mode = 'inline';
        this.sizes = /** @type {number[]} */ ([]);
        this.requests = /** @type {Map<number, () => void>} */ (new Map());
        this.ids = 0;
        this.element = h(
            'div.column',
            { 'data-app': uriOf(tool) },
            this.bar(),
            this.frame,
            this.said,
            this.fold,
            this.log
        );
        this.hears = (/** @type {MessageEvent} */ event) => this.hear(event);
        window.addEventListener('message', this.hears);
        hosts.add(this);
        this.looks = new MutationObserver(() => this.changed({ theme: this.theme() }));
        this.looks.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
        this.measures = new ResizeObserver(() => this.changed({ containerDimensions: this.size() }));
        this.measures.observe(this.element);
        this.frame.addEventListener('load', () =>
            setTimeout(() => {
                if (!this.isReady && this.frame.isConnected)
                    this.find('it has not said ui/notifications/initialized: hosts would show nothing');
            }, PATIENCE_MS)
        );
    }

    bar() {
        const mode = h(
            'button.button.small',
            { type: 'button', onclick: () => this.show(this.mode === 'inline' ? 'fullscreen' : 'inline') },
            'Full screen'
        );
        this.modeButton = mode;
        return h(
            'div.row',
            null,
            h('h2.grow', null, 'App'),
            mode,
            h('button.button.small', { type: 'button', onclick: () => this.close() }, 'Close the app')
        );
    }

    theme() {
        return document.documentElement.dataset.theme;
    }

    size() {
        return { maxHeight: this.mode === 'fullscreen' ? innerHeight : HIGHEST, width: this.frame.clientWidth };
    }

    /** @param {string} text */
    note(text) {
        if (this.log.childElementCount < MOST_NOTES) this.log.append(h('li', null, text.slice(0, 500)));
    }

    /** Something that a real host would not accept. @param {string} text */
    find(text) {
        if (
            [...this.findings.children].some(it => it.textContent === text) ||
            this.findings.childElementCount >= MOST_NOTES
        )
            return;
        this.findings.append(h('li', null, text));
        this.fold.hidden = false;
        this.fold.firstElementChild.textContent = many(this.findings.childElementCount, 'finding');
    }

    /** @param {Params} message */
    send(message) {
        this.frame.contentWindow?.postMessage({ jsonrpc: '2.0', ...message }, '*');
    }

    /** @param {string} method @param {Params} params */
    tell(method, params) {
        this.send({ method, params });
    }

    /** @param {Params} context */
    changed(context) {
        if (this.isReady) this.tell('ui/notifications/host-context-changed', context);
    }

    /** Asks the app, and waits a little. @param {string} method @param {Params} params */
    ask(method, params) {
        const id = ++this.ids;
        const answered = new Promise(resolve => {
            this.requests.set(id, () => resolve(true));
        });
        this.send({ id, method, params });
        return Promise.race([answered, new Promise(resolve => setTimeout(() => resolve(false), TEARDOWN_MS))]);
    }

    /** @param {string} mode */
    show(mode) {
        this.mode = MODES.includes(mode) ? mode : 'inline';
        this.element.classList.toggle('fullscreen', this.mode === 'fullscreen');
        if (this.modeButton) this.modeButton.textContent = this.mode === 'fullscreen' ? 'Inline' : 'Full screen';
        this.changed({ displayMode: this.mode, containerDimensions: this.size() });
    }

    /** Lets the app finish. @param {string} reason */
    async tearDown(reason) {
        if (this.isReady && !(await this.ask('ui/resource-teardown', { reason })))
            this.note('ui/resource-teardown was not answered');
    }

    /** Lets the app finish, and removes it. */
    async close() {
        await this.tearDown('the person closed the app');
        this.end();
        fill(this.element, h('p.soft', null, 'The app is closed.'), this.fold, this.log);
    }

    /** Shows something that waits for the person, unless too much does. @param {HTMLElement} box */
    present(box) {
        if (this.said.childElementCount >= MOST_NOTES) throw new Error(`more than ${MOST_NOTES} cards wait`);
        this.said.append(box);
    }

    end() {
        hosts.delete(this);
        this.stop?.();
        window.removeEventListener('message', this.hears);
        this.looks.disconnect();
        this.measures.disconnect();
    }

    /** @param {MessageEvent} event */
    async hear(event) {
        if (!this.frame.isConnected) return this.end();
        // The frame has no origin of its own: only its window tells which one it is.
        if (event.source !== this.frame.contentWindow || event.origin !== 'null') return;
        const { data } = event;
        if (data?.jsonrpc !== '2.0') return;
        if (typeof data.method !== 'string') {
            this.requests.get(data.id)?.();
            this.requests.delete(data.id);
        } else if (data.id === undefined) this.notified(data.method, data.params ?? {});
        else {
            try {
                this.send({ id: data.id, result: await this.answer(data.method, data.params ?? {}) });
            } catch (error) {
                this.note(`${data.method}: ${said(error)}`);
                this.send({ id: data.id, error: { code: -32000, message: said(error) } });
            }
        }
    }

    /** @param {string} method @param {Params} params */
    notified(method, params) {
        if (method === 'ui/notifications/initialized') this.begin();
        else if (method === 'ui/notifications/size-changed') this.resize(Number(params.height));
        else if (method === 'ui/notifications/request-teardown') this.close();
        else if (method === 'notifications/message')
            this.note(`${textOf(params.level ?? 'log')}: ${textOf(params.data)}`);
        else this.note(method);
    }

    begin() {
        if (this.isReady) return this.find('it says ui/notifications/initialized more than once');
        this.isReady = true;
        let args = {};
        try {
            args = JSON.parse(this.call.params).arguments ?? {};
        } catch {
            // Shown in the form.
        }
        this.tell('ui/notifications/tool-input', { arguments: args });
        this.follow();
        const seen = { ...this.connection.lists };
        this.stop = listen(() => {
            this.follow();
            for (const list of ['tools', 'resources', 'prompts']) {
                if (seen[list] === this.connection.lists[list]) continue;
                seen[list] = this.connection.lists[list];
                this.tell(`notifications/${list}/list_changed`, {});
            }
        });
    }

    /** Tells the app how its call has ended, once. */
    follow() {
        const call = calls.get(this.call.call) ?? this.call;
        if (this.hasEnded || call.state === 'running') return;
        this.hasEnded = true;
        if (call.state === 'done') this.tell('ui/notifications/tool-result', JSON.parse(call.result ?? '{}'));
        else {
            const reason = call.problem?.what ?? 'the person cancelled the call';
            this.tell('ui/notifications/tool-cancelled', { reason });
        }
    }

    /** @param {number} height */
    resize(height) {
        const now = performance.now();
        this.sizes = [...this.sizes.filter(it => now - it < 1000), now];
        if (this.sizes.length > MOST_SIZES) {
            this.find(
                `it changes its size more than ${MOST_SIZES} times in a second: its height depends on the frame's`
            );
            return;
        }
        if (height > HIGHEST) this.find(`it wants to be ${height} pixels high; hosts cut it off`);
        if (height > 0) this.frame.style.height = `${Math.min(height, HIGHEST)}px`;
    }

    /** What the app asks of its host. @param {string} method @param {Params} params */
    async answer(method, params) {
        const { connection } = this;
        switch (method) {
            case 'ui/initialize':
                return this.initialize(params);
            case 'ping':
                return {};
            case 'tools/call': {
                const wanted = (connection.lists.tools?.items ?? []).find(it => it.name === params.name);
                if (!wanted || !isForApp(wanted)) throw new Error(`the app may not call ${params.name}`);
                return relay(connection, method, { name: params.name, arguments: params.arguments ?? {} });
            }
            case 'resources/read':
            case 'tools/list':
            case 'resources/list':
            case 'resources/templates/list':
            case 'prompts/list':
                return relay(connection, method, params);
            case 'ui/open-link':
                return this.openLink(String(params.url));
            case 'ui/download-file':
                return this.offer(params);
            case 'ui/message': {
                const words = [params.content]
                    .flat()
                    .map(it => textOf(it?.text ?? it))
                    .join(' ');
                this.present(h('div.card', null, h('b', null, 'The app says to the model: '), words.slice(0, 10_000)));
                return {};
            }
            case 'ui/update-model-context':
                this.note(`context for the model: ${JSON.stringify(params)}`);
                return {};
            case 'ui/request-display-mode': {
                if (MODES.includes(params.mode)) this.show(params.mode);
                else this.find(`it wants to be shown as ${params.mode}, which this host did not offer`);
                return { mode: this.mode };
            }
            default:
                throw new Error(`${method} is not supported`);
        }
    }

    /** @param {Params} params */
    initialize(params) {
        if (!params.appInfo?.name) this.find('ui/initialize lacks appInfo');
        const { ui } = this;
        const hostCapabilities = {
            openLinks: {},
            downloadFile: {},
            serverTools: { listChanged: true },
            serverResources: { listChanged: true },
            logging: {},
            updateModelContext: { text: {} },
            message: { text: {} },
            sandbox: { csp: ui.csp ?? {}, permissions: ui.permissions ?? {} }
        };
        const hostContext = {
            toolInfo: { tool: this.tool },
            theme: this.theme(),
            displayMode: this.mode,
            availableDisplayModes: MODES,
            containerDimensions: this.size(),
            locale: navigator.language,
            timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
            platform: 'web',
            userAgent: 'bowline'
        };
        return {
            protocolVersion: '2026-01-26',
            hostInfo: { name: 'bowline', version: program.version },
            hostCapabilities,
            hostContext
        };
    }

    /** Nothing opens by itself: the person sees where it leads. @param {string} url */
    openLink(url) {
        const safe = safeLink(url);
        if (!safe) throw new Error('not a web address');
        const box = h(
            'div.card.row',
            null,
            h('span.grow', null, 'The app wants to open ', h('code', null, safe)),
            h('a.button', { href: safe, target: '_blank', rel: 'noopener noreferrer' }, 'Open'),
            h('button.button', { type: 'button', onclick: () => box.remove() }, 'Do not')
        );
        this.present(box);
        return {};
    }

    /** Files that the app offers; the person saves them. @param {Params} params */
    offer(params) {
        const files = [params.contents]
            .flat()
            .map(it => it?.resource ?? it)
            .filter(it => typeof (it?.text ?? it?.blob) === 'string');
        if (!files.length) throw new Error('no file that this host can save');
        for (const it of files.slice(0, 20)) {
            const name = textOf(it.uri).split('/').pop() || 'file';
            const text = it.text ?? bytesOf(it.blob);
            if (text === null) throw new Error(`${name} is not base64`);
            this.present(
                h(
                    'div.card.row',
                    null,
                    h('span.grow', null, 'The app offers ', h('code', null, name)),
                    h('button.button', { type: 'button', onclick: () => download(name, text) }, 'Save')
                )
            );
        }
        return {};
    }
}

/** @param {Connection} connection @param {any} tool @param {Call} call */
export function showApp(connection, tool, call) {
    const place = h('div.column', null, h('p.soft', null, 'Loading the app…'));
    act('app', { connection: connection.number, uri: uriOf(tool) })
        .then(served => fill(place, new Host(connection, tool, call, served).element))
        .catch(error => fill(place, h('p', { role: 'alert' }, said(error))));
    return place;
}
