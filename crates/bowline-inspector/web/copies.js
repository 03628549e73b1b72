// @ts-check
/** A call as a command line, as a request of curl, as a program. The page has no secrets: what to fill in is marked. */
import { member, parse, textMember } from './json.js';

/** @typedef {import('./store.js').Connection} Connection */

/** Stands for what the page does not know. */
const VALUE = 'VALUE';

/** @param {string} text for a shell */
const quoted = text => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`);

/** JSON, whose strings Rust reads as they are meant. @param {string} json */
const rusty = json =>
    json.replace(/\\(u([0-9a-f]{4})|.)/gi, (all, it, hex) =>
        hex ? `\\u{${hex}}` : it === 'b' ? '\\u{8}' : it === 'f' ? '\\u{c}' : it === '/' ? '/' : all
    );
/** @param {string} text */
const literal = text => rusty(JSON.stringify(text));

/** @param {Connection} connection */
function words({ place, target, revision }) {
    const options = [
        ...Object.keys(target ? {} : (place?.headers ?? {})).map(name => ['--header', `${name}: ${VALUE}`]),
        ...Object.keys(target ? {} : (place?.env ?? {})).map(name => ['--env', `${name}=${VALUE}`]),
        ...(!target && place?.cwd ? [['--cwd', place.cwd]] : []),
        ...(revision ? [['--revision', revision]] : [])
    ];
    const command = !target && place?.command ? ['--', place.command, ...(place.args ?? [])] : [];
    const server = target ?? place?.url;
    return { before: server ? [server] : [], after: [...options.flat(), ...command] };
}

/** The same value as a header, plain or encoded; nothing where it is not sent. @param {unknown} it */
function headerValue(it) {
    if (typeof it === 'boolean' || Number.isSafeInteger(it)) return String(it);
    if (typeof it !== 'string') return null;
    const isPlain = /^[\x20-\x7e]*$/.test(it) && it.trim() === it && !/^=\?base64\?.*\?=$/.test(it);
    const bytes = () => Array.from(new TextEncoder().encode(it), byte => String.fromCharCode(byte)).join('');
    return isPlain ? it : `=?base64?${btoa(bytes())}?=`;
}

/** The arguments that a tool wants repeated as headers. @param {any} schema @param {any} value @returns {string[]} */
function paramHeaders(schema, value) {
    const own = typeof schema?.['x-mcp-header'] === 'string' ? headerValue(value) : null;
    const members = value && typeof value === 'object' ? Object.entries(schema?.properties ?? {}) : [];
    return [
        ...(own === null ? [] : [`mcp-param-${schema['x-mcp-header'].toLowerCase()}: ${own}`]),
        ...members.flatMap(([name, it]) => (Object.hasOwn(value, name) ? paramHeaders(it, value[name]) : []))
    ];
}

/** @param {Connection} connection @param {string} params */
function paramsOf(connection, params) {
    try {
        const { name, arguments: args } = parse(params);
        const tool = connection.lists.tools?.items.find(it => it.name === name);
        return paramHeaders(tool?.inputSchema, args);
    } catch {
        // A draft that is not JSON has no arguments.
        return [];
    }
}

/** @param {Connection} connection @param {string} method @param {string} params @param {string} url */
function curl(connection, method, params, url) {
    const revision = connection.info?.protocolVersion ?? '2026-07-28';
    const isModern = connection.info?.era === 'modern';
    const fields = [
        'content-type: application/json',
        'accept: application/json, text/event-stream',
        `mcp-protocol-version: ${revision}`
    ];
    const subject = headerValue(textMember(params, 'name') ?? textMember(params, 'uri'));
    if (isModern) fields.push(`mcp-method: ${method}`, ...(subject ? [`mcp-name: ${subject}`] : []));
    else fields.push('mcp-session-id: SESSION');
    if (isModern && method === 'tools/call') fields.push(...paramsOf(connection, params));
    for (const name of Object.keys(connection.place?.headers ?? {})) fields.push(`${name}: ${VALUE}`);
    if (connection.login?.isLoggedIn) fields.push('authorization: Bearer TOKEN');
    const meta = JSON.stringify({
        'io.modelcontextprotocol/protocolVersion': revision,
        'io.modelcontextprotocol/clientInfo': { name: 'curl', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {}
    });
    const rest = params.trim().slice(1);
    const whole = isModern ? `{"_meta":${meta}${rest.trim() === '}' ? '' : ','}${rest}` : params;
    const body = `{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${whole}}`;
    return `curl ${quoted(url)} ${fields.map(it => `-H ${quoted(it)}`).join(' ')} -d ${quoted(body)}`;
}

/** Where a program of one's own connects to. @param {Connection} connection */
function rustTarget({ place, revision }) {
    const pairs = (/** @type {string} */ method, /** @type {object | undefined} */ of) =>
        Object.keys(of ?? {})
            .map(name => `.${method}(${literal(name)}, "${VALUE}")`)
            .join('');
    const args = (place?.args ?? []).map(literal).join(', ');
    const target = place?.command
        ? `bowline::client::Command::new(${literal(place.command)})${args ? `.args([${args}])` : ''}` +
          pairs('env', place.env) +
          (place.cwd ? `.current_dir(${literal(place.cwd)})` : '')
        : Object.keys(place?.headers ?? {}).length
          ? `bowline::client::Endpoint::new(${literal(place?.url)})${pairs('header', place?.headers)}`
          : literal(place?.url ?? 'URL');
    const names = { modern: 'Modern', legacy: 'Legacy', auto: 'Auto' };
    const known = names[/** @type {keyof typeof names} */ (revision)];
    const preference = known ?? `Pin(bowline::Revision::V${revision?.replace(/-/g, '_')})`;
    return revision
        ? `bowline::Client::builder("app", "1")\n    .preference(bowline::client::Preference::${preference})\n    .connect(${target})`
        : `bowline::Client::connect(${target})`;
}

/**
 * The same call elsewhere. @param {Connection} connection @param {string} method @param {string} params
 * @returns {Record<string, string>}
 */
export function copies(connection, method, params) {
    const { before, after } = words(connection);
    const url = connection.place?.url;
    const name = textMember(params, 'name') ?? '';
    const args = member(params, 'arguments') ?? '{}';
    const isTool = method === 'tools/call';
    const command = isTool
        ? ['bowline', 'call', ...before, name, '--json', args, ...after]
        : ['bowline', 'raw', ...before, method, params, ...after];
    const call = isTool
        ? `call_tool(${literal(name)}, serde_json::json!(${rusty(args)}))`
        : `call_json(${literal(method)}, serde_json::json!(${rusty(params)}))`;
    const rust = `let client = ${rustTarget(connection)}.await?;\nlet result = client.${call}.await?;`;
    return {
        command: command.map(quoted).join(' '),
        rust,
        ...(url ? { curl: curl(connection, method, params, url) } : {})
    };
}
