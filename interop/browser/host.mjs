// A host in the browser, made of the official library: connects to the server behind `/mcp`, calls a tool with an
// app, and shows the app in a sandboxed frame. `window.host` is for the test.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
    AppBridge,
    buildAllowAttribute,
    getToolUiResourceUri,
    PostMessageTransport,
    RESOURCE_MIME_TYPE
} from '@modelcontextprotocol/ext-apps/app-bridge';

/** The policy that the extension prescribes for what an app declares. */
function policy(csp = {}) {
    const sources = (fallback, ...lists) => [fallback, ...lists.flat()].filter(Boolean).join(' ');
    const { connectDomains, resourceDomains = [], frameDomains, baseUriDomains } = csp;
    return [
        `default-src 'none'`,
        `script-src ${sources(`'self' 'unsafe-inline'`, resourceDomains)}`,
        `style-src ${sources(`'self' 'unsafe-inline'`, resourceDomains)}`,
        `img-src ${sources(`'self' data:`, resourceDomains)}`,
        `font-src ${sources(`'self'`, resourceDomains)}`,
        `connect-src ${connectDomains?.join(' ') || `'none'`}`,
        `frame-src ${frameDomains?.join(' ') || `'none'`}`,
        `base-uri ${baseUriDomains?.join(' ') || `'self'`}`
    ].join('; ');
}

/** Opens the app of a tool, with the result of a first call. */
window.openApp = async (toolName, theme, era) => {
    const extensions = { 'io.modelcontextprotocol/ui': { mimeTypes: [RESOURCE_MIME_TYPE] } };
    const versionNegotiation = { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' };
    const client = new Client(
        { name: 'host', version: '1.0.0' },
        { capabilities: { extensions }, versionNegotiation }
    );
    await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', location.href)));
    const { tools } = await client.listTools();
    const tool = tools.find(({ name }) => name === toolName);
    const uri = getToolUiResourceUri(tool);
    const [content] = (await client.readResource({ uri })).contents;
    const { csp, permissions } = content._meta?.ui ?? {};

    const frame = document.createElement('iframe');
    frame.title = tool.title;
    frame.sandbox = 'allow-scripts';
    frame.allow = buildAllowAttribute(permissions);
    const meta = `<meta http-equiv="Content-Security-Policy" content="${policy(csp)}">`;
    const html = content.text.replace('<head>', `<head>${meta}`);

    const capabilities = { serverTools: {}, updateModelContext: { text: {} } };
    const hostContext = { theme, displayMode: 'inline', locale: 'en-US', toolInfo: { tool } };
    const bridge = new AppBridge(client, { name: 'host', version: '1.0.0' }, capabilities, { hostContext });
    const seen = { mimeType: content.mimeType, revision: client.getNegotiatedProtocolVersion(), told: [], sizes: [] };
    bridge.onupdatemodelcontext = async ({ content }) => {
        seen.told.push(content[0].text);
        return {};
    };
    bridge.addEventListener('sizechange', ({ height }) => {
        seen.sizes.push(height);
        frame.style.height = `${height}px`;
    });
    const initialized = new Promise(resolve => bridge.addEventListener('initialized', resolve));
    document.body.append(frame);
    await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
    frame.srcdoc = html;
    await initialized;
    await bridge.sendToolInput({ arguments: {} });
    await bridge.sendToolResult(await client.callTool({ name: toolName, arguments: {} }));
    document.documentElement.dataset.theme = theme;
    window.host = { bridge, client, seen };
};
