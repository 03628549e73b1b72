// Tasks, through the official client of both generations: the checks of the suite `tasks`.

import assert from 'node:assert/strict';
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { refused, text, until } from './checks.mjs';

const EXTENSION = 'io.modelcontextprotocol/tasks';

/**
 * Sends requests past the client, which does not know results that are tasks, and takes their answers before it
 * sees them.
 */
function dispatcher({ transport }) {
    const waiting = new Map();
    const next = transport.onmessage;
    let count = 0;
    transport.onmessage = (message, extra) => {
        const answer = message.method === undefined && waiting.get(message.id);
        if (answer) {
            waiting.delete(message.id);
            const { error, result } = message;
            answer(error ? { kind: 'error', error } : { kind: 'result', result });
        } else {
            next?.(message, extra);
        }
    };
    return request => {
        const id = `task-${++count}`;
        return new Promise((resolve, reject) => {
            waiting.set(id, resolve);
            transport.send({ jsonrpc: '2.0', id, ...request }).catch(reject);
        });
    };
}

const YES = { action: 'accept', content: { confirm: true, name: 'Ada' } };

/** A session of the official client of tasks. Questions are answered with yes. */
function open(peer) {
    const { client, revision } = peer;
    // In the legacy era the client has a handler of its own.
    peer.elicited = YES;
    const isModern = client.getProtocolEra() === 'modern';
    const clientCapabilities = { elicitation: { form: {} }, extensions: { [EXTENSION]: {} } };
    const clientInfo = { name: 'walk', version: '2.0.0' };
    return createTaskSessionFromClient(client, {
        endpointId: 'bowline',
        onInputRequest: async () => YES,
        ...(isModern && {
            rawDispatch: dispatcher(client),
            v2RequestFraming: { protocolVersion: revision, clientInfo, clientCapabilities }
        })
    });
}

/** A check with such a session. */
function inSession(work) {
    return {
        since: '2025-11-25',
        async work(peer) {
            const session = open(peer);
            try {
                await work(session, peer);
            } finally {
                await session.close();
            }
        }
    };
}

/** Calls a tool as a task, which it must become. */
async function start(session, name, args = {}) {
    const execution = await session.callTool(name, args, { task: { preference: 'require' } });
    assert.equal(execution.kind, 'task');
    return execution;
}

export const TASKS = {
    completes: inSession(async session => {
        const execution = await start(session, 'slow_compute', { seconds: 0.2, label: 'it' });
        const { outcome } = await execution.settle();
        assert.equal(text(resultFromTaskOutcome(outcome)), 'it took 0.2 seconds');
    }),
    status: inSession(async session => {
        const execution = await start(session, 'slow_compute', { seconds: 60, label: 'it' });
        const task = session.task(execution.handle.taskId);
        await until(async () => (await task.snapshot()).statusMessage === 'computing it');
        assert.equal((await task.snapshot()).status, 'working');
        await execution.cancel();
        await until(async () => (await task.snapshot()).status === 'cancelled');
    }),
    fails: inSession(async session => {
        const execution = await start(session, 'failing_job');
        const { outcome } = await execution.settle();
        const result = outcome.status === 'completed' ? outcome.result : undefined;
        assert.ok(outcome.status === 'failed' || result.isError, JSON.stringify(outcome));
    }),
    errs: inSession(async session => {
        const execution = await start(session, 'protocol_error_job');
        const { outcome } = await execution.settle();
        assert.equal(outcome.status, 'failed');
        assert.match(outcome.error.message, /as it should/);
    }),
    asks: inSession(async session => {
        const execution = await start(session, 'confirm_delete', { filename: 'a.txt' });
        const { outcome } = await execution.settle();
        assert.equal(text(resultFromTaskOutcome(outcome)), 'a.txt was deleted');
    }),
    'asks-twice': inSession(async session => {
        const execution = await start(session, 'multi_input');
        const { outcome } = await execution.settle();
        assert.equal(text(resultFromTaskOutcome(outcome)), 'answers: [true, true]');
    }),
    'by-id': inSession(async session => {
        const execution = await start(session, 'slow_compute', { seconds: 0.5, label: 'it' });
        await execution.detach();
        const outcome = await session.task(execution.handle.taskId).result();
        assert.equal(text(resultFromTaskOutcome(outcome)), 'it took 0.5 seconds');
    }),
    unknown: inSession(async session => {
        const error = await refused(session.task('nobody-has-this').snapshot());
        assert.equal(error.code, -32602);
    })
};
