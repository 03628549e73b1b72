// @ts-check
/** What servers ask, as cards that wait. */
import { h, link, safeLink } from './dom.js';
import { form } from './form.js';
import { block } from './content.js';
import { act } from './program.js';
import { connections } from './store.js';

/** @param {any} question */
export function card(question) {
    const { params, kind } = question;
    const told = h('p.small', { role: 'alert' });
    const from = connections.get(question.connection);
    const answer = async (/** @type {string} */ result) => {
        try {
            await act('answer', { question: question.question }, { result });
        } catch (error) {
            told.textContent = /** @type {Error} */ (error).message;
        }
    };
    const refuse = (/** @type {string} */ action) =>
        kind === 'sampling'
            ? act('answer', { question: question.question, error: 'the user declined' })
            : answer(JSON.stringify({ action }));
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
    const said = h('textarea', { 'aria-label': 'What the model says', rows: '4' });
    const model = h('input', { type: 'text', value: 'a person', 'aria-label': 'Name of the model' });
    return h(
        'form.card.question.column',
        {
            'data-question': question.question,
            onsubmit: (/** @type {Event} */ event) => {
                event.preventDefault();
                answer(
                    JSON.stringify({
                        role: 'assistant',
                        content: { type: 'text', text: said.value },
                        model: model.value,
                        stopReason: 'endTurn'
                    })
                );
            }
        },
        head,
        params.systemPrompt ? h('p.soft', null, params.systemPrompt) : null,
        (params.messages ?? []).map((/** @type {any} */ message) =>
            h('div', null, h('span.tag', null, message.role), [message.content].flat().map(block))
        ),
        h('p.soft.small', null, `Answer as the model would; at most ${params.maxTokens ?? '?'} tokens.`),
        said,
        model,
        buttons(h('button.button.main', { type: 'submit' }, 'Answer')),
        told
    );
}
