// @ts-check
/** The host of apps: each in a frame of another origin, and the `ui/*` dialect between the two. */
import { fill, h, safeLink } from './dom.js';
import { act } from './program.js';
import { calls, listen } from './store.js';

/** The app of a tool. @param {any} tool @returns {string | undefined} */
export const uriOf = tool => tool._meta?.ui?.resourceUri ?? tool._meta?.['ui/resourceUri'];
/** @param {any} tool */
const isForApp = tool => (tool._meta?.ui?.visibility ?? ['model', 'app']).includes('app');
let next = 0;

/** Calls a method of the server for an app. @param {any} connection @param {string} method @param {any} params */
function relay(connection, method, params) {
    const name = `app-${Date.now().toString(36)}-${++next}`;
    return new Promise((resolve, reject) => {
        const stop = listen(() => {
            const call = calls.get(name);
            if (!call || call.state === 'running') return;
            stop();
            call.state === 'done' ? resolve(JSON.parse(call.result)) : reject(new Error(call.problem?.what ?? call.state));
        });
        act('call', { connection: connection.number, call: name, method, params }).catch(reject);
    });
}

/** @param {any} connection @param {any} tool @param {any} call */
export function showApp(connection, tool, call) {
    const place = h('div.column', { 'data-app': uriOf(tool) }, h('p.soft', null, 'Loading the app…'));
    const log = h('ul.small.soft');
    const note = (/** @type {string} */ text) => { if (log.childElementCount < 100) log.append(h('li', null, text)); };
    act('app', { connection: connection.number, uri: uriOf(tool) }).then(({ address, ui, findings }) => {
        const wanted = { camera: 'camera', microphone: 'microphone', geolocation: 'geolocation', clipboardWrite: 'clipboard-write' };
        const allow = Object.entries(wanted).filter(([name]) => ui.permissions?.[name]).map(([, it]) => it).join('; ');
        const frame = h('iframe.app', { src: address, sandbox: 'allow-scripts allow-forms', title: `App of ${tool.name}`, allow, referrerpolicy: 'no-referrer' });
        const said = h('div.column');
        let isReady = false;
        const send = (/** @type {any} */ message) => frame.contentWindow?.postMessage({ jsonrpc: '2.0', ...message }, '*');
        const tell = (/** @type {string} */ method, /** @type {any} */ params) => send({ method, params });
        const hear = async (/** @type {MessageEvent} */ event) => {
            if (!frame.isConnected) return window.removeEventListener('message', hear);
            // The frame has no origin of its own: who it is, only its window tells.
            if (event.source !== frame.contentWindow || event.origin !== 'null') return;
            const { data } = event;
            if (data?.jsonrpc !== '2.0' || typeof data.method !== 'string') return;
            if (data.id === undefined) {
                if (data.method === 'ui/notifications/initialized' && !isReady) {
                    isReady = true;
                    let args = {};
                    try { args = JSON.parse(call.params).arguments ?? {}; } catch { /* shown in the form */ }
                    tell('ui/notifications/tool-input', { arguments: args });
                    tell('ui/notifications/tool-result', JSON.parse(call.result));
                } else if (data.method === 'ui/notifications/size-changed') {
                    const height = Number(data.params?.height);
                    if (height > 0) frame.style.height = `${Math.min(height, 4000)}px`;
                } else note(`${data.method}`);
                return;
            }
            try { send({ id: data.id, result: await answer(data) }); }
            catch (error) { note(`${data.method}: ${/** @type {Error} */ (error).message}`); send({ id: data.id, error: { code: -32000, message: /** @type {Error} */ (error).message } }); }
        };
        const answer = async (/** @type {any} */ { method, params }) => {
            switch (method) {
                case 'ui/initialize': return { protocolVersion: '2026-01-26', hostInfo: { name: 'bowline', version: '0.1.0' }, hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, updateModelContext: { text: {} }, message: { text: {} }, sandbox: { csp: ui.csp ?? {}, permissions: ui.permissions ?? {} } },
                    hostContext: { toolInfo: { tool }, theme: document.documentElement.dataset.theme, displayMode: 'inline', availableDisplayModes: ['inline'], containerDimensions: { maxHeight: 4000, width: frame.clientWidth }, locale: navigator.language, timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone, platform: 'web', userAgent: 'bowline' } };
                case 'ping': return {};
                case 'tools/call': {
                    const wantedTool = (connection.lists.tools?.items ?? []).find((/** @type {any} */ it) => it.name === params?.name);
                    if (!wantedTool || !isForApp(wantedTool)) throw new Error(`the app may not call ${params?.name}`);
                    return relay(connection, method, { name: params.name, arguments: params.arguments ?? {} });
                }
                case 'resources/read': case 'tools/list': case 'resources/list': case 'resources/templates/list': case 'prompts/list': return relay(connection, method, params ?? {});
                case 'ui/open-link': {
                    const safe = safeLink(String(params?.url));
                    if (!safe) throw new Error('not a web address');
                    said.append(h('div.card.row', null, h('span.grow', null, 'The app wants to open ', h('code', null, safe)), h('a.button', { href: safe, target: '_blank', rel: 'noopener noreferrer' }, 'Open')));
                    return {};
                }
                case 'ui/message': said.append(h('div.card', null, h('b', null, 'The app says to the model: '), [params?.content].flat().map((/** @type {any} */ it) => it?.text ?? JSON.stringify(it)).join(' '))); return {};
                case 'ui/update-model-context': note(`context for the model: ${JSON.stringify(params).slice(0, 300)}`); return {};
                case 'ui/request-display-mode': return { mode: 'inline' };
                default: throw new Error(`${method} is not supported`);
            }
        };
        window.addEventListener('message', hear);
        fill(place, h('h2', null, 'App'), frame, said, findings.length ? h('details.card', null, h('summary', null, `${findings.length} findings`), h('ul', null, findings.map((/** @type {string} */ it) => h('li', null, it)))) : null, log);
    }).catch(error => fill(place, h('p', { role: 'alert' }, error.message)));
    return place;
}
