// @ts-check
/** What servers ask, as cards that wait. */
import { fill, h, link, safeLink, tabs, textOf } from './dom.js';
import { form } from './form.js';
import { block } from './content.js';
import { pretty, problemOf, write } from './json.js';
import { act, attempt, said } from './program.js';
import { connections } from './store.js';

/** Whatever a server asks can be seen, and declined. @param {any} question @returns {HTMLElement} */
export function card(question) {
    try {
        return cardOf(question);
    } catch (error) {
        const refuse = attempt(() => act('answer', { question: question.question, error: 'the user declined' }));
        return h(
            'div.card.bad.question.column',
            { 'data-question': question.question },
            h('p', { role: 'alert' }, `This question cannot be shown: ${said(error)}`),
            pretty(JSON.stringify(question.params)),
            h('div', null, h('button.button', { type: 'button', onclick: refuse }, 'Decline'))
        );
    }
}

/** @param {any} question */
function cardOf(question) {
    const { params, kind } = question;
    const told = h('p.small', { role: 'alert' });
    const from = connections.get(question.connection);
    const send = async (/** @type {Record<string, unknown>} */ members, /** @type {Record<string, string>} */ raw) => {
        try {
            await act('answer', { question: question.question, ...members }, raw);
        } catch (error) {
            told.textContent = said(error);
        }
    };
    const answer = (/** @type {string} */ result) => send({}, { result });
    const refuse = (/** @type {string} */ action) =>
        kind === 'sampling' ? send({ error: 'the user declined' }, {}) : answer(JSON.stringify({ action }));
    const buttons = (/** @type {any} */ main) =>
        h(
            'div.row',
            null,
            main,
            h('button.button', { type: 'button', onclick: () => refuse('decline') }, 'Decline'),
            kind === 'sampling'
                ? null
                : h('button.button', { type: 'button', onclick: () => refuse('cancel') }, 'Dismiss')
        );
    const head = h(
        'div.row',
        null,
        h(
            'span.tag.accent',
            null,
            { form: 'form', url: 'address', sampling: 'sampling' }[/** @type {string} */ (kind)]
        ),
        h('span.soft.small', null, `asked by ${from?.info?.serverInfo?.name ?? from?.about ?? 'the server'}`),
        h('span.grow'),
        h('a.small', { href: `#/${question.connection}/wire?q=${encodeURIComponent(question.method)}` }, 'Messages')
    );
    if (kind === 'form') {
        const edit = form(params.requestedSchema);
        return h(
            'form.card.question.column',
            {
                'data-question': question.question,
                onsubmit: (/** @type {Event} */ event) => {
                    event.preventDefault();
                    if (edit.isJson()) answer(`{"action":"accept","content":${edit.text()}}`);
                }
            },
            head,
            h('p', null, params.message),
            edit.element,
            buttons(h('button.button.main', { type: 'submit' }, 'Send')),
            told
        );
    }
    if (kind === 'url') {
        const safe = safeLink(params.url);
        return h(
            'div.card.question.column',
            { 'data-question': question.question },
            head,
            h('p', null, params.message),
            h('p.mono', null, params.url),
            safe
                ? h('p.soft.small', null, `Opens ${new URL(safe).host} in a new tab. Check the address first.`)
                : h('p', null, h('span.tag.bad', null, 'not a web address: it will not be opened')),
            buttons(
                h(
                    'span.row',
                    null,
                    safe ? link(params.url, 'Open the page') : null,
                    h('button.button.main', { type: 'button', onclick: () => answer('{"action":"accept"}') }, 'Accept')
                )
            ),
            told
        );
    }
    const reply = sampled();
    return h(
        'form.card.question.column',
        {
            'data-question': question.question,
            onsubmit: (/** @type {Event} */ event) => {
                event.preventDefault();
                const { text, problem } = reply.read();
                told.textContent = problem;
                if (!problem) answer(text);
            }
        },
        head,
        params.systemPrompt ? h('p.soft', null, params.systemPrompt) : null,
        (params.messages ?? []).map((/** @type {any} */ message) =>
            h(
                'div',
                null,
                h('span.tag', null, message.role),
                [message.content].flat().map(it => block(it))
            )
        ),
        (params.tools ?? []).map((/** @type {any} */ tool) => offered(tool, reply.use)),
        params.toolChoice ? h('p.soft.small', null, `Which tools to use: ${params.toolChoice.mode}`) : null,
        h('p.soft.small', null, `Answer as the model would; at most ${params.maxTokens ?? '?'} tokens.`),
        reply.element,
        buttons(h('button.button.main', { type: 'submit' }, 'Answer')),
        told
    );
}

/** A tool that the server offers to the model. @param {any} tool @param {(name: string) => void} use */
function offered(tool, use) {
    const name = textOf(tool.name);
    return h(
        'details.card',
        null,
        h('summary', null, 'Tool ', h('b', null, name)),
        h(
            'div.column',
            null,
            h('p', null, textOf(tool.description)),
            pretty(write(tool.inputSchema ?? {})),
            h('div', null, h('button.button.small', { type: 'button', onclick: () => use(name) }, 'Use it'))
        )
    );
}

/** What a person says as the model: words, or the whole result as JSON, which can use tools. */
function sampled() {
    const words = h('textarea', { 'aria-label': 'What the model says', rows: '4' });
    const model = h('input', { type: 'text', value: 'a person', 'aria-label': 'Name of the model' });
    const json = h('textarea', { 'aria-label': 'The result as JSON', rows: '10', spellcheck: 'false' });
    const place = h('div.column');
    let isJson = false;
    const text = (/** @type {unknown} */ content, /** @type {string} */ stopReason, /** @type {number} */ indent) =>
        JSON.stringify({ role: 'assistant', content, model: model.value, stopReason }, null, indent);
    const said = (indent = 0) => text({ type: 'text', text: words.value }, 'endTurn', indent);
    const show = (/** @type {boolean} */ next) => {
        isJson = next;
        bar.choose(isJson ? 'json' : 'text');
        // What was typed stays.
        if (isJson && !json.value) json.value = said(2);
        fill(place, isJson ? json : [words, model]);
    };
    const bar = tabs(
        'How to answer',
        [
            ['text', 'Text'],
            ['json', 'JSON']
        ],
        name => show(name === 'json')
    );
    show(false);
    return {
        element: h('div.column', null, bar.element, place),
        /** Writes a result that uses a tool. @param {string} name */
        use: name => {
            json.value = text([{ type: 'tool_use', id: 'call-1', name, input: {} }], 'toolUse', 2);
            show(true);
            json.focus();
        },
        /** The result, exactly as typed, or why there is none yet. */
        read: () => (isJson ? { text: json.value, problem: problemOf(json.value) } : { text: said(), problem: '' })
    };
}
