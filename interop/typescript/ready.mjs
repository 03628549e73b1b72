// The checks of the TypeScript clients for the ready-made servers, one suite each. A new server needs a suite
// here and a line in `READY` of `xtask/src/interop/ready.rs`.

import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { setTimeout as sleep } from 'node:timers/promises';
import { SkillsClient, SkillVerificationError } from '@modelcontextprotocol/client/ext/skills';
import { names, refused, reported, text, until } from './checks.mjs';
import { TASKS } from './tasks.mjs';

/** The notifications of a kind so far. */
const heard = (peer, kind) => peer.heard.filter(({ method }) => method === `notifications/${kind}`);

const toolNames = async peer => names((await peer.client.listTools()).tools);

const steps = reports => reports.map(({ progress }) => progress);

const read = async (peer, uri) => (await peer.client.readResource({ uri })).contents[0].text;

/** The server's identity. */
function identity(name) {
    return {
        async work({ client }) {
            assert.equal(client.getServerVersion()?.name, name);
            assert.ok(client.getInstructions().length > 0, 'instructions');
        }
    };
}

/** Changes the list of tools, and waits for the notification. */
async function changing(peer, work) {
    peer.heard.length = 0;
    const end = await peer.watch({ toolsListChanged: true });
    await work();
    await until(() => heard(peer, 'tools/list_changed').length > 0);
    await end();
}

const COUNTER = {
    identity: identity('counter'),
    tools: {
        async work({ client, revision }) {
            const { tools } = await client.listTools();
            const wanted = ['increment', 'decrement', 'get_value', 'say_hello', 'echo', 'sum', 'long_task'];
            assert.deepEqual(names(tools), wanted);
            if (revision >= '2025-03-26') {
                const hints = tools.find(tool => tool.name === 'get_value').annotations;
                assert.equal(hints.readOnlyHint, true);
            }
        }
    },
    calls: {
        async work(peer) {
            const before = Number(text(await peer.call('get_value')));
            assert.equal(text(await peer.call('increment')), String(before + 1));
            assert.equal(text(await peer.call('decrement')), String(before));
            assert.equal(text(await peer.call('say_hello')), 'hello');
            assert.equal(text(await peer.call('echo', { saying: 'ahoy' })), 'ahoy');
            assert.equal(text(await peer.call('sum', { a: 1023123, b: 2352345 })), '3375468');
        }
    },
    resources: {
        async work(peer) {
            const { resources } = await peer.client.listResources();
            const uris = resources.map(({ uri }) => uri).sort();
            assert.deepEqual(uris, [
                'counter://value',
                'memo://insights',
                'str:////Users/to/some/path/',
                'ui://counter/app'
            ]);
            assert.equal(await read(peer, 'str:////Users/to/some/path/'), '/Users/to/some/path/');
            assert.match(await read(peer, 'memo://insights'), /^Business Intelligence Memo/);
            assert.ok(peer.isMissing(await refused(read(peer, 'memo://nothing'))));
        }
    },
    prompts: {
        async work({ client }) {
            const { prompts } = await client.listPrompts();
            assert.deepEqual(names(prompts), ['example_prompt', 'counter_analysis']);
            const filled = { name: 'counter_analysis', arguments: { goal: '5', strategy: 'fast' } };
            const { messages } = await client.getPrompt(filled);
            assert.match(messages[0].content.text, /should reach 5: .* fast way/);
            const ref = { type: 'ref/prompt', name: 'counter_analysis' };
            const { completion } = await client.complete({ ref, argument: { name: 'strategy', value: 'c' } });
            assert.deepEqual(completion.values, ['careful']);
        }
    },
    subscription: {
        async work(peer) {
            const uri = 'counter://value';
            peer.heard.length = 0;
            const end = await peer.watch({ resourceSubscriptions: [uri] });
            const value = text(await peer.call('increment'));
            await until(() => heard(peer, 'resources/updated').length > 0);
            assert.equal(heard(peer, 'resources/updated')[0].params.uri, uri);
            assert.equal(await read(peer, uri), value);
            await end();
        }
    },
    progress: {
        async work(peer) {
            const [said, reports] = await reported(peer, 'long_task', { steps: 3 });
            assert.equal(said, 'counted 3 steps');
            assert.deepEqual(steps(reports), [1, 2, 3]);
        }
    },
    cancel: {
        async work(peer) {
            const stop = new AbortController();
            const options = { signal: stop.signal, onprogress: () => stop.abort('enough') };
            await refused(peer.call('long_task', { steps: 600 }, options));
            const value = async () => text(await peer.call('get_value'));
            let before;
            // One more step may be in progress, but no others follow.
            await until(async () => {
                before = await value();
                await sleep(250);
                return (await value()) === before;
            });
        }
    }
};

const EXAMPLE = {
    identity: identity('example-server'),
    tools: {
        async work(peer) {
            const wanted = ['calculator_arithmetic', 'calculator_define', 'calculator_forget', 'weather_current'];
            assert.deepEqual((await toolNames(peer)).sort(), wanted);
        }
    },
    calculator: {
        async work(peer) {
            const result = await peer.call('calculator_arithmetic', { expression: 'sin(30) + 2 ^ 3 ^ 2' });
            assert.equal(text(result), 'sin(30) + 2 ^ 3 ^ 2 = 512.5 (angles in degrees)');
            if (peer.revision >= '2025-06-18') {
                assert.equal(result.structuredContent.result, 512.5);
            }
            const wrong = await peer.call('calculator_arithmetic', { expression: '1 / (2 - 2)' });
            assert.equal(wrong.isError, true);
            assert.equal(text(wrong), '1 / 0 is undefined: division by zero');
        }
    },
    weather: {
        async work(peer) {
            const wanted = { location: 'San Francisco', units: 'imperial' };
            const { content, structuredContent } = await peer.call('weather_current', wanted);
            const sentence =
                'Current weather in San Francisco: 68°F, partly cloudy with light winds from the west at 8 mph. Humidity: 65%';
            assert.equal(content.length, 1);
            const [first, second] = content[0].text.split('\n');
            assert.equal(first, sentence);
            assert.match(second, /^This is sample data for San Francisco/);
            if (peer.revision >= '2025-06-18') {
                assert.equal(structuredContent.is_sample, true);
            }
        }
    },
    'weather-asked': {
        since: '2025-06-18',
        async work(peer) {
            peer.asked.length = 0;
            const place = 'Springfield, Illinois, United States';
            peer.elicited = { action: 'accept', content: { place } };
            const { structuredContent } = await peer.call('weather_current', { location: 'Springfield' });
            assert.equal(structuredContent.location, place);
            const { properties } = peer.asked[0].params.requestedSchema;
            assert.equal(properties.place.enum.length, 3);
            peer.elicited = { action: 'decline' };
            const declined = await peer.call('weather_current', { location: 'Springfield' });
            assert.equal(declined.isError, true);
        }
    },
    'weather-assumed': {
        before: '2025-06-18',
        async work(peer) {
            const { content } = await peer.call('weather_current', { location: 'Springfield' });
            assert.match(content[0].text, /^Assuming Springfield, Missouri, United States\. Other places/m);
        }
    },
    resources: {
        async work(peer) {
            assert.match(await read(peer, 'calculator://functions'), /sqrt: square root/);
            assert.equal(JSON.parse(await read(peer, 'weather://current/Tokyo')).is_sample, true);
            const ref = { type: 'ref/resource', uri: 'weather://current/{location}' };
            const argument = { name: 'location', value: 'to' };
            const { completion } = await peer.client.complete({ ref, argument });
            assert.deepEqual(completion.values, ['Tokyo']);
        }
    },
    'tools-changed': {
        async work(peer) {
            const formula = { name: 'area', expression: 'pi * r ^ 2', variables: ['r'] };
            await changing(peer, () => peer.call('calculator_define', formula));
            assert.ok((await toolNames(peer)).includes('calculator_area'));
            assert.equal(text(await peer.call('calculator_area', { r: 1 })), '3.14159265358979');
            await changing(peer, () => peer.call('calculator_forget', { name: 'area' }));
            assert.ok(!(await toolNames(peer)).includes('calculator_area'));
        }
    }
};

const ALWAYS = ['operator_status', 'operator_available', 'operator_assign'];
const ASSIGNED = ['operator_release', 'operator_styles', 'say', 'queue_status', 'queue_clear'];

/** With a silent voice: `interop/silent-espeak.sh`. */
const OPERATOR = {
    identity: identity('operator'),
    tools: {
        async work(peer) {
            assert.deepEqual(await toolNames(peer), ALWAYS);
            assert.match(text(await peer.call('operator_status')), /^no operator is assigned/);
            assert.match(text(await peer.call('operator_available')), /Silent Sam \(normal, /);
        }
    },
    assign: {
        async work(peer) {
            const bad = await peer.call('operator_assign', { operator: 'nobody' });
            assert.equal(bad.isError, true);
            await changing(peer, () => peer.call('operator_assign', { operator: 'Silent Sam', style: 'slow' }));
            assert.deepEqual(await toolNames(peer), [...ALWAYS, ...ASSIGNED]);
            assert.match(text(await peer.call('operator_styles')), /"current":"slow"/);
        }
    },
    say: {
        async work(peer) {
            const [said, reports] = await reported(peer, 'say', { text: 'One. Two.' });
            assert.equal(said, 'Silent Sam has spoken 2 sentences');
            assert.deepEqual(steps(reports), [0, 1, 2]);
        }
    },
    queue: {
        async work(peer) {
            assert.deepEqual(JSON.parse(text(await peer.call('queue_status'))).queue, []);
            assert.equal(text(await peer.call('queue_clear')), '0 dropped from the queue');
            assert.equal(JSON.parse(await read(peer, 'operator://status')).operator, 'Silent Sam');
        }
    },
    release: {
        async work(peer) {
            await changing(peer, () => peer.call('operator_release'));
            assert.deepEqual(await toolNames(peer), ALWAYS);
            assert.equal((await refused(peer.call('say', { text: 'Too late.' }))).code, -32602);
        }
    }
};

/** A message that is shown, not sent. */
const DRY = { server: '127.0.0.1', message: 'ahoy', dry_run: true };

const MCP_LOGGER = {
    identity: identity('mcp-logger'),
    tools: {
        async work(peer) {
            const wanted = ['send-syslog', 'send-syslog-batch', 'test-syslog-target'];
            assert.deepEqual(await toolNames(peer), wanted);
        }
    },
    'send-dry': {
        async work(peer) {
            const sent = await peer.call('send-syslog', { ...DRY, severity: 'err', tag: 'walk' });
            assert.match(text(sent), /<11>/);
            if (peer.revision >= '2025-06-18') {
                assert.equal(sent.structuredContent.pri, 11);
            }
        }
    },
    'send-udp': {
        async work(peer) {
            const socket = createSocket('udp4');
            try {
                const heard = new Promise(done => socket.once('message', done));
                await new Promise(done => socket.bind(0, '127.0.0.1', done));
                const { port } = socket.address();
                const sent = await peer.call('send-syslog', { server: '127.0.0.1', port, message: 'ahoy' });
                assert.equal(text(sent).split('\n')[0], `Success: Sent to 127.0.0.1:${port} (Encoding: UTF-8)`);
                assert.match(String(await heard), /ahoy/);
            } finally {
                socket.close();
            }
        }
    },
    refusals: {
        async work(peer) {
            const unknown = await peer.call('send-syslog', { ...DRY, severity: 'loud' }).catch(error => error);
            assert.match(unknown.message ?? text(unknown), /emerg/);
            const elsewhere = await peer.call('send-syslog', { ...DRY, server: '192.0.2.1', dry_run: false });
            assert.equal(elsewhere.isError, true);
        }
    },
    resources: {
        async work(peer) {
            assert.match(await read(peer, 'syslog://facilities'), /local7/);
            assert.match(await read(peer, 'syslog://severities'), /emerg/);
        }
    },
    prompt: {
        async work(peer) {
            assert.ok(names((await peer.client.listPrompts()).prompts).includes('log-event'));
        }
    }
};

/** All servers in one. */
const BOWLINE = {
    identity: identity('bowline'),
    tools: {
        async work(peer) {
            const tools = await toolNames(peer);
            for (const name of ['counter_increment', 'example_weather_current', 'operator_status']) {
                assert.ok(tools.includes(name), name);
            }
            assert.match(text(await peer.call('counter_say_hello')), /hello/);
        }
    },
    'tools-changed': {
        async work(peer) {
            const formula = { name: 'twice', expression: '2 * x', variables: ['x'] };
            await changing(peer, () => peer.call('example_calculator_define', formula));
            assert.equal(text(await peer.call('example_calculator_twice', { x: 21 })), '42');
            await changing(peer, () => peer.call('example_calculator_forget', { name: 'twice' }));
            assert.ok(!(await toolNames(peer)).includes('example_calculator_twice'));
        }
    }
};

/** A folder of skills, for clients that verify what they read. */
const SKILLS = {
    identity: {
        async work({ client }) {
            assert.equal(client.getServerVersion()?.name, 'skills');
        }
    },
    'skills-list': {
        since: '2025-11-25',
        async work({ client }) {
            const skills = new SkillsClient(client);
            assert.ok(skills.supported && skills.directoryRead);
            const { skills: listed, invalid } = await skills.list();
            assert.deepEqual(invalid, []);
            assert.deepEqual(
                listed.map(({ uri }) => uri),
                ['skill://code-review/SKILL.md', 'skill://release-notes/SKILL.md']
            );
            assert.equal(listed[0].frontmatter.name, 'code-review');
            assert.deepEqual((await skills.get(listed[0].uri)).skill, listed[0]);
        }
    },
    'skills-read': {
        since: '2025-11-25',
        async work({ client }) {
            const skills = new SkillsClient(client);
            const [skill] = (await skills.list()).skills;
            const main = await skills.read(skill);
            assert.ok(main.verified);
            assert.equal(main.mimeType, 'text/markdown');
            assert.deepEqual(main.frontmatter, skill.frontmatter);
            const checklist = await skills.read(skill, 'references/checklist.md');
            assert.ok(checklist.verified && checklist.text.length > 0);
            const unlisted = skills.read(skill, 'references/other.md');
            await assert.rejects(unlisted, error => {
                return error instanceof SkillVerificationError && error.reason === 'unlisted';
            });
        }
    },
    'skills-directory': {
        since: '2025-11-25',
        async work({ client }) {
            const { resources } = await new SkillsClient(client).readDirectory('skill://code-review');
            const types = Object.fromEntries(resources.map(({ uri, mimeType }) => [uri, mimeType]));
            assert.equal(types['skill://code-review/SKILL.md'], 'text/markdown');
            assert.equal(types['skill://code-review/references'], 'inode/directory');
        }
    }
};

export const SUITES = {
    'mcp-logger': MCP_LOGGER,
    counter: COUNTER,
    example: EXAMPLE,
    operator: OPERATOR,
    bowline: BOWLINE,
    skills: SKILLS,
    tasks: TASKS
};
