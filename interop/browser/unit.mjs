// The parts of the inspector's page that need no document: `node unit.mjs FOLDER`.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const load = name => import(pathToFileURL(join(process.argv[2], name)));
const { difference, member, Num, parse, stringEnd, textMember, write } = await load('json.js');
const { kind, resolve, shape } = await load('schema.js');
const { isMarkdown, marks } = await load('markdown.js');
const { Filter, HANG, hangs, percentile, statistics, ticks, Wire } = await load('session.js');
const store = await load('store.js');
const { copies } = await load('copies.js');
const { ask } = await load('ask.js');
const { expand, variables } = await load('uri.js');

let failures = 0;
async function check(title, run) {
    const name = title.replace(/[ :,’]+/g, '-');
    try {
        await run();
        console.log(`ok page ${name}`);
    } catch (error) {
        failures++;
        console.log(
            `not ok page ${name}: ${String(error.message ?? error)
                .split('\n')
                .slice(0, 6)
                .join(' ')}`
        );
    }
}

/** What a function does, in steps: reads of characters and searches, counted by a string that counts. */
function bounded(limit, run) {
    const begun = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(begun);
    // A quadratic reader needs minutes for these inputs, a linear one milliseconds; anything between is not measured.
    assert.ok(user + system < limit, `${Math.round((user + system) / 1000)} ms of work`);
}
const SECONDS = 1_000_000;

await check('JSON is read as it is written', () => {
    for (const text of ['0', '-1.50', '1e400', '12345678901234567890', '0.1', '1E5', '-0'])
        assert.equal(write(parse(text)), text);
    for (const text of ['{"a":[1,{"b":null}],"c":"x\\"\\\\\\u00e9"}', '[]', '{}', ' [ true , false ] ', '"\\\\"'])
        assert.deepEqual(parse(text), JSON.parse(text));
    assert.deepEqual(Object.keys(parse('{"__proto__":1,"constructor":2}')), ['__proto__', 'constructor']);
    assert.ok(parse('1.0') instanceof Num && !(parse('1') instanceof Num));
});
await check('what is not JSON is rejected with its place', () => {
    for (const text of [
        '',
        '{',
        '[1,]',
        '{"a":1,}',
        '01',
        '1.',
        '+1',
        "'a'",
        '"a',
        '"\n"',
        '{a:1}',
        '1 2',
        'nul',
        'NaN',
        '[1 2]',
        '"\\x"'
    ])
        assert.throws(() => parse(text), /line \d+, column \d+/, text);
    assert.throws(() => parse('{\n  "a": tru\n}'), /line 2, column 8/);
    assert.throws(() => parse('['.repeat(100_000)), /levels/);
    assert.throws(() => parse('{"a":1,"a":2}', { isUnique: true }), /second time/);
    assert.deepEqual(parse('{"a":1,"a":2}'), { a: 2 });
});
await check('members are found in their exact text', () => {
    assert.equal(member('{"a":{"b":1},"b":[1.0, "}"]}', 'b'), '[1.0, "}"]');
    assert.equal(member('{"x":"\\"b\\":1","b": 2 }', 'b'), '2');
    for (const text of ['{}', '[{"b":1}]', '{"a":{"b":1}}', '"b"', '{"b":'])
        assert.equal(member(text, 'b'), null, text);
    assert.equal(textMember('{"name":"a\\u0041"}', 'name'), 'aA');
    assert.equal(textMember('{"name":1}', 'name'), null);
    const long = `{"data":"${'a\\"'.repeat(2_000_000)}","b":1}`;
    assert.equal(member(long, 'b'), '1');
    assert.equal(stringEnd('"\\\\\\"" ', 0), 6);
});
await check('differences are found where they are', () => {
    assert.equal(difference({ a: [1, { b: '5' }] }, { a: [1, { b: 5 }] }), 'a[1].b');
    assert.equal(difference({ a: 1, b: 2 }, { b: 2, a: 1 }), null);
    assert.equal(difference(parse('{"a":1.0}'), parse('{"a":1}')), 'a');
    assert.equal(difference({}, { a: undefined }), 'a');
    assert.equal(difference([], 'abc'), 'the whole');
    assert.equal(difference({ 0: 'a' }, ['a']), 'the whole');
});
await check('schemas that branch and return take little work', () => {
    const branch = { $defs: {}, allOf: [{ $ref: '#' }, { $ref: '#' }], properties: { a: { type: 'string' } } };
    bounded(SECONDS, () => assert.deepEqual(Object.keys(resolve(branch, branch).properties), ['a']));
    const tree = { $defs: {} };
    for (let at = 0; at < 60; at++)
        tree.$defs[`n${at}`] = {
            allOf: [{ $ref: `#/$defs/n${at + 1}` }, { $ref: `#/$defs/n${at + 1}` }, { $ref: '#/$defs/n0' }]
        };
    tree.$defs.n60 = { properties: { deep: { type: 'integer' } } };
    bounded(SECONDS, () => assert.ok(resolve({ $ref: '#/$defs/n0' }, tree).properties.deep));
    const ring = { anyOf: [{ $ref: '#' }] };
    bounded(SECONDS, () => shape(ring, ring));
    assert.equal(kind({ $ref: '#/%E0%A4%A' }, {}), 'any');
});
await check('schemas are resolved as they mean', () => {
    const root = {
        $defs: { 'a/b': { type: 'string' }, o: { type: 'object', properties: { x: {} }, required: ['x'] } }
    };
    assert.equal(resolve({ $ref: '#/$defs/a~1b' }, root).type, 'string');
    const both = resolve({ $ref: '#/$defs/o', properties: { y: {} }, required: ['y'] }, root);
    assert.deepEqual(
        [Object.keys(both.properties).sort(), [...both.required].sort()],
        [
            ['x', 'y'],
            ['x', 'y']
        ]
    );
    assert.deepEqual(shape({ anyOf: [{ type: 'integer' }, { type: 'null' }] }, {}).types, ['integer']);
    assert.ok(shape({ type: ['string', 'null'] }, {}).nullable);
    assert.equal(shape({ type: ['string', 'number'] }, {}).choices.length, 2);
    assert.equal(shape({ oneOf: [{ type: 'string' }, { type: 'number' }] }, {}).choices.length, 2);
});
await check('Markdown is marked', () => {
    const brief = text =>
        marks(text)
            .map(it => `${it.kind[0]}:${it.text}${it.href ? `>${it.href}` : ''}`)
            .join('|');
    for (const [text, expected] of [
        ['a **b** c', 't:a |s:b|t: c'],
        ['`` a`b ``', 'c: a`b '],
        ['*x* __y__', 's:x|t: |s:y'],
        ['[n](https://x) y', 'l:n>https://x|t: y'],
        ['![i](https://x "t")', 'l:i>https://x'],
        ['see https://x.y/z.', 't:see |l:https://x.y/z.>https://x.y/z.'],
        ['snake_case_name', 't:snake_case_name'],
        ['**open', 't:**open'],
        ['`open', 't:`open'],
        ['a\n**b\nc**', 't:a\n**b\nc**'],
        ['[x] (y)', 't:[x] (y)']
    ])
        assert.equal(brief(text), expected, text);
});
await check('Markdown of an attacker takes little work', () => {
    const n = 100_000;
    for (const text of [
        '`'.repeat(n),
        '`a'.repeat(n),
        '` ``'.repeat(n),
        '**'.repeat(n),
        '*a '.repeat(n),
        '['.repeat(n),
        '[]('.repeat(n),
        '![a]('.repeat(n),
        '_'.repeat(n),
        'http://'.repeat(n),
        '[a](b '.repeat(n),
        Array.from({ length: 2000 }, (_, at) => '`'.repeat(at % 300)).join(' ')
    ]) {
        bounded(2 * SECONDS, () => marks(text));
        bounded(2 * SECONDS, () => isMarkdown(text));
    }
    bounded(2 * SECONDS, () => isMarkdown(`${'-'.repeat(n)}x\n|`.repeat(3) + '\n'.repeat(n)));
    assert.ok(
        isMarkdown('# a') &&
            isMarkdown('- a\n- b') &&
            isMarkdown('|a|\n|-|') &&
            !isMarkdown('a - b') &&
            !isMarkdown('2 * 3 * 4')
    );
});

const line = (at, direction, message, more = {}) =>
    JSON.stringify({ kind: 'message', at, direction, message, ...more });
const asked = (at, id, method = 'tools/call', params = { name: `t${id}` }) =>
    line(at, 'sent', { jsonrpc: '2.0', id, method, params });
const answered = (at, id, result = {}) => line(at, 'received', { jsonrpc: '2.0', id, result });
await check('requests are paired, rounds and polls below them, silence is marked', () => {
    const wire = new Wire();
    for (const it of [
        '{"kind":"session","at":0,"session":{}}',
        asked(0.1, 1),
        answered(0.3, 1, { requestState: 's' }),
        asked(0.4, 2, 'tools/call', { name: 't', requestState: 's' }),
        answered(0.5, 2, { taskId: 'k' }),
        asked(0.6, 3, 'tasks/get', { taskId: 'k' }),
        asked(5, 4),
        'not json',
        '[]'
    ])
        wire.add(it);
    assert.deepEqual(
        wire.rows.map(it => [it.kind, Boolean(it.answer), Boolean(it.child)]),
        [
            ['session', false, false],
            ['request', true, false],
            ['request', true, true],
            ['request', false, true],
            ['request', false, false]
        ]
    );
    assert.equal(wire.rows[4].gap?.toFixed(1), '4.4');
    const [calls, polls] = statistics(wire);
    assert.deepEqual(
        [calls.method, calls.count, calls.waiting, calls.p50.toFixed(1), polls.waiting],
        ['tools/call', 3, 1, '0.1', 1]
    );
    assert.deepEqual([percentile([1, 2, 3, 4], 0.5), percentile([], 0.5), percentile([7], 0.99)], [2, 0, 7]);
});
await check('a lone request hangs by the clock, and a stream of changes never does', () => {
    const wire = new Wire();
    // Two lines came late: the clock of the session is at least as far ahead as the earliest of them says.
    wire.add(asked(0.5, 1, 'subscriptions/listen'), 101);
    assert.deepEqual([wire.now(200), hangs(wire.rows[0], 200)], [0.5, false], 'nothing waits');
    wire.add(asked(1, 2), 100.25);
    wire.add(asked(2, 3), 104);
    wire.add(answered(2, 3), 104);
    assert.deepEqual([wire.now(), wire.now(104), wire.now(106.25)], [2, 4.75, 7]);
    const of = heard => wire.rows.map(it => hangs(it, wire.now(heard)));
    assert.deepEqual(of(100.25 + HANG), [false, false, false]);
    assert.deepEqual(of(100.5 + HANG), [false, true, false]);
    assert.deepEqual(of(), [false, false, false], 'a session that is over goes on no more');
    wire.add(answered(7, 2), 107);
    assert.equal(wire.now(200), 7);
});
await check('what an earlier connection has asked is over, and its ids are free', () => {
    const wire = new Wire();
    for (const it of [asked(1, 1), asked(1, 2, 'subscriptions/listen'), '{"kind":"end","at":2}', asked(3, 1, 'x')])
        wire.add(it, 100);
    const filter = new Filter(wire, { query: 'waiting' });
    filter.update();
    assert.deepEqual([filter.shown.map(it => it.what), wire.rows[0].until, wire.rows[1].until], [['x t1'], 2, 2]);
    wire.add(answered(4, 1), 101);
    assert.deepEqual([Boolean(wire.rows[0].answer), Boolean(wire.rows[3].answer), wire.now(500)], [false, true, 4]);
    assert.deepEqual(
        statistics(wire).map(it => it.waiting),
        [0, 0, 0]
    );
});
await check('an axis has few round marks', () => {
    for (const [from, to, expected] of [
        [0, 2.717, '0 1 2'],
        [0, 0.013, '0.000 0.005 0.010'],
        [12.3452, 12.346, '12.3452 12.3454 12.3456 12.3458 12.3460'],
        [0, 8.64, '0 5'],
        [0, 1, '0.0 0.5 1.0'],
        [0, 500, '0 200 400'],
        [3, 3, ''],
        [5, 0, ''],
        [0, Infinity, '']
    ])
        assert.equal(
            ticks(from, to, 4)
                .map(it => it.text)
                .join(' '),
            expected,
            `${from} to ${to}`
        );
    for (let to = 1e-6; to < 1e6; to *= 1.3) {
        const count = ticks(0, to, 4).length;
        assert.ok(count >= 2 && count <= 5, `${to}: ${count}`);
    }
});
await check('a filter looks only at what is new or has changed', () => {
    const wire = new Wire();
    for (let id = 0; id < 100_000; id++) wire.add(asked(id / 1000, id));
    const filter = new Filter(wire, { query: 'error' });
    assert.equal(filter.update(20_000), 20_000);
    assert.ok(!filter.isDone);
    assert.equal(filter.update(), 80_000);
    assert.equal(filter.shown.length, 0);
    wire.add(line(101, 'received', { jsonrpc: '2.0', id: 500, error: { code: 1, message: 'no' } }));
    wire.add(asked(102, 100_001));
    assert.equal(filter.update(), 2, 'one changed, one new');
    assert.deepEqual(
        filter.shown.map(it => it.id),
        ['500'],
        'an answer makes its request an error'
    );
    const slow = new Filter(wire, { query: 'waiting t7' });
    slow.update();
    const before = slow.shown.length;
    wire.add(answered(103, 7));
    slow.update();
    assert.equal(slow.shown.length, before - 1, 'what is answered waits no longer');
    const part = new Filter(wire, { from: 50, to: 50.01 });
    part.update();
    assert.equal(part.shown.at(-1).at, 50.01);
});
await check('a session is bounded, and its filters follow', () => {
    const wire = new Wire({ rows: 100, characters: 1e9 });
    wire.add('{"kind":"session","at":0,"session":{}}');
    const filter = new Filter(wire, {});
    for (let id = 0; id < 1000; id++) {
        wire.add(asked(id, id));
        filter.update();
    }
    assert.ok(
        wire.rows.length <= 100 && wire.lines.length <= 101 && wire.waiting.size <= 100,
        `${wire.rows.length} rows`
    );
    assert.equal(wire.dropped + wire.rows.length, 1001);
    assert.deepEqual(
        filter.shown.map(it => it.seq),
        wire.rows.map(it => it.seq)
    );
    assert.match(wire.text(), /^\{"kind":"session"/);
    wire.add(answered(1001, 3));
    assert.equal(wire.rows.at(-1).kind, 'answer', 'the request is gone');
    const small = new Wire({ rows: 1e9, characters: 10_000 });
    for (let id = 0; id < 1000; id++) small.add(asked(id, id));
    assert.ok(small.characters <= 10_000 && small.lines.reduce((sum, it) => sum + it.length, 0) === small.characters);
});
await check('what is forgotten stays so, and calls are bounded', () => {
    const call = (name, more = {}) => ({
        event: 'call',
        connection: 1,
        call: name,
        method: 'tools/call',
        params: '{}',
        state: 'done',
        result: '{}',
        ...more
    });
    store.hear([
        { event: 'connection', connection: 1, state: 'open', about: 'x', name: '' },
        call('running', { state: 'running', result: undefined })
    ]);
    store.hear(Array.from({ length: store.MOST_CALLS + 500 }, (_, at) => call(`c${at}`)));
    assert.equal(store.calls.size, store.MOST_CALLS);
    assert.ok(store.calls.has('running') && !store.calls.has('c0') && store.calls.has(`c${store.MOST_CALLS + 499}`));
    store.hear([call('large', { result: 'x'.repeat(store.MOST_CHARACTERS) }), call('next')]);
    assert.ok(!store.calls.has('large') && store.calls.has('next'), 'large results go first come, first gone');
    store.hear([
        { event: 'forgotten', prefix: 'c1/' },
        { event: 'wire', connection: 1, line: '{"kind":"stderr","at":1,"text":"late"}' },
        call('late')
    ]);
    assert.deepEqual([store.connections.size, store.calls.size], [0, 0], 'a ghost');
});
await check('what is asked is settled whatever becomes of its call', async () => {
    const names = [];
    globalThis.fetch = async (_, { body }) => {
        names.push(JSON.parse(body).call.call);
        return new Response('null');
    };
    const before = store.listeners.size;
    const hear = (...events) => store.hear(events.map(it => ({ connection: 3, ...it })));
    const call = (call, state, more) => ({ event: 'call', call, method: 'x', params: '{}', state, ...more });
    hear({ event: 'connection', state: 'open', about: 'x', name: '' }, { event: 'position', isCurrent: true });
    const [good, bad, lost] = [ask(3, 'x', {}), ask(3, 'x', {}), ask(3, 'x', {}).catch(error => error.message)];
    const others = Array.from({ length: store.MOST_CALLS }, (_, at) => call(`other-${at}`, 'done', { result: '1' }));
    hear(call(names[0], 'done', { result: '[1]' }), ...others);
    assert.equal(await good, '[1]', 'evicted before it was heard');
    hear(call(names[1], 'failed', { problem: { what: 'no' } }), call(names[2], 'running'));
    await assert.rejects(bad, /^Error: no$/);
    store.hear([{ event: 'forgotten', prefix: 'c3/' }]);
    assert.match(await lost, /closed/);
    assert.deepEqual([store.listeners.size, store.awaited.size], [before, 0]);
    const late = ask(3, 'x', {}).catch(error => error.message);
    store.hear([]);
    assert.match(await late, /closed/);
    delete globalThis.fetch;
});
await check('URI templates expand as RFC 6570 says', () => {
    const values = {
        ...{ var: 'value', hello: 'Hello World!', half: '50%', base: 'http://example.com/home/', path: '/foo/bar' },
        ...{
            x: '1024',
            y: '768',
            empty: '',
            list: ['red', 'green', 'blue'],
            keys: { semi: ';', dot: '.', comma: ',' }
        },
        ...{ done: 'a%20b', odd: '\ud800', none: [], nothing: null, umlaut: 'ünïcode' }
    };
    for (const [template, expected] of [
        ['{var}|{hello}|{half}', 'value|Hello%20World%21|50%25'],
        [
            '{+hello}|{+half}|{+base}index|{+path,x}/here',
            'Hello%20World!|50%25|http://example.com/home/index|/foo/bar,1024/here'
        ],
        ['{+done}|{done}|{#done}', 'a%20b|a%2520b|#a%20b'],
        ['{#path:6}here|{+path:6}here|{var:3}|{var:30}|{umlaut:2}', '#/foo/bhere|/foo/bhere|val|value|%C3%BCn'],
        [
            '{list}|{list*}|{keys}|{keys*}',
            'red,green,blue|red,green,blue|semi,%3B,dot,.,comma,%2C|semi=%3B,dot=.,comma=%2C'
        ],
        [
            '{+list*}|{+keys}|{+keys*}|{#list*}',
            'red,green,blue|semi,;,dot,.,comma,,|semi=;,dot=.,comma=,|#red,green,blue'
        ],
        ['X{.list}|X{.list*}|X{.x,y}', 'X.red,green,blue|X.red.green.blue|X.1024.768'],
        ['{/list}|{/list*,path:4}|{/var,empty}', '/red,green,blue|/red/green/blue/%2Ffoo|/value/'],
        [
            '{;x,y,empty}|{;hello:5}|{;list*}|{;keys*}',
            ';x=1024;y=768;empty|;hello=Hello|;list=red;list=green;list=blue|;semi=%3B;dot=.;comma=%2C'
        ],
        [
            '{?x,empty}|{?var:3}|{?list}|{?list*}|{&keys*}',
            '?x=1024&empty=|?var=val|?list=red,green,blue|?list=red&list=green&list=blue|&semi=%3B&dot=.&comma=%2C'
        ],
        ['{nothing}{?none*}{?missing,toString}|{odd}|{+odd}', '|%EF%BF%BD|%EF%BF%BD']
    ])
        assert.equal(expand(template, values), expected, template);
    bounded(SECONDS, () => variables('{'.repeat(200_000)));
    const names = variables('a{x:3}b{/list*}{?q,r}').map(it => [it.name, it.isList]);
    assert.deepEqual(names, [
        ['x', false],
        ['list', true],
        ['q', false],
        ['r', false]
    ]);
});
await check('what a view throws stops nothing else', () => {
    const [seen, complaints, complain] = [[], [], console.error];
    console.error = it => complaints.push(it.message);
    const stops = [store.listen(() => assert.fail('a view')), store.listen(kinds => seen.push(...kinds))];
    store.hear([
        {
            event: 'wire',
            connection: 7,
            get line() {
                throw new Error('an event');
            }
        },
        { event: 'doctor', connection: 7 }
    ]);
    for (const stop of stops) stop();
    console.error = complain;
    assert.deepEqual(seen, ['wire', 'wire/7', 'doctor', 'doctor/7']);
    assert.deepEqual(complaints, ['an event', 'a view']);
    assert.equal(store.connections.get(7).doctor.event, 'doctor');
});
await check('percentiles are those of the latest answers', () => {
    const wire = new Wire();
    for (let id = 0; id < 25_000; id++) {
        wire.add(asked(id, id));
        wire.add(answered(id + (id < 15_000 ? 0.5 : 0.25), id));
    }
    const [of] = statistics(wire);
    assert.deepEqual([of.count, of.waiting, of.p50, of.max], [25_000, 0, 0.25, 0.25]);
});
await check('names that cannot be made a string are shown', () => {
    const wire = new Wire();
    wire.add(asked(0, 1, 'x', { name: { toString: 1, valueOf: 1 } }));
    wire.add(asked(0, 2, 'x', { uri: null }));
    assert.deepEqual(
        wire.rows.map(it => it.what),
        ['x {"toString":1,"valueOf":1}', 'x']
    );
});
await check('a call is copied without secrets, with all that it needs', () => {
    const tools = {
        items: [
            {
                name: 'a b',
                inputSchema: {
                    properties: {
                        at: { properties: { region: { 'x-mcp-header': 'Region' } } },
                        count: { 'x-mcp-header': 'Count' }
                    }
                }
            }
        ]
    };
    const url = {
        about: 'http://x/',
        place: { url: 'http://x/?a=[redacted]', headers: { 'X-Key': '…' } },
        revision: 'modern',
        info: { era: 'modern', protocolVersion: '2026-07-28' },
        lists: { tools }
    };
    const params = '{"name":"a b","arguments":{"at":{"region":"zürich"},"count":42,"text":"it\'s"}}';
    const all = copies(url, 'tools/call', params);
    assert.equal(
        all.command,
        `bowline call 'http://x/?a=[redacted]' 'a b' --json '{"at":{"region":"zürich"},"count":42,"text":"it'\\''s"}' --header 'X-Key: VALUE' --revision modern`
    );
    for (const part of [
        "-H 'mcp-param-region: =?base64?esO8cmljaA==?='",
        "-H 'mcp-param-count: 42'",
        "-H 'mcp-name: a b'",
        "-H 'X-Key: VALUE'"
    ])
        assert.ok(all.curl.includes(part), `${part} in ${all.curl}`);
    assert.match(
        all.rust,
        /builder\("app", "1"\)\n {4}\.preference\(bowline::client::Preference::Modern\)\n {4}\.connect\(bowline::client::Endpoint::new\("http:\/\/x\/\?a=\[redacted\]"\)\.header\("X-Key", "VALUE"\)\)/
    );
    const program = {
        about: "a b 'c",
        place: { command: '/a b', args: ["'c"], env: { KEY: '…' }, cwd: '/d e' },
        lists: {}
    };
    const own = copies(program, 'tools/call', '{"name":"t","arguments":{"a":"\\u00e9\\b"}}');
    assert.equal(
        own.command,
        `bowline call t --json '{"a":"\\u00e9\\b"}' --env KEY=VALUE --cwd '/d e' -- '/a b' ''\\''c'`
    );
    assert.equal(own.curl, undefined);
    assert.ok(
        own.rust.startsWith(
            `let client = bowline::Client::connect(bowline::client::Command::new("/a b").args(["'c"]).env("KEY", "VALUE").current_dir("/d e")).await?;`
        ),
        own.rust
    );
    assert.ok(own.rust.includes('json!({"a":"\\u{00e9}\\u{8}"})'), own.rust);
    const named = {
        about: 'x',
        target: 'client/x',
        place: { command: 'x', args: [] },
        revision: '2025-06-18',
        lists: {}
    };
    const raw = copies(named, 'prompts/get', '{"name":"p"}');
    assert.equal(raw.command, `bowline raw client/x prompts/get '{"name":"p"}' --revision 2025-06-18`);
    assert.match(raw.rust, /Pin\(bowline::Revision::V2025_06_18\)/);
});
process.exit(failures ? 1 : 0);
