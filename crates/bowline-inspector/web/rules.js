// @ts-check
/** Rules that answer the questions of servers, so that nobody has to. */
import { fill, h } from './dom.js';
import { act, said } from './program.js';
import { listen, program } from './store.js';

const EXAMPLE = `{
  "forms": [
    { "when": "Who are you", "content": { "name": "Ada" } },
    { "when": "delete", "action": "decline" }
  ],
  "urls": [{ "when": "https://example.com/", "action": "accept" }],
  "sampling": [{ "when": "weather", "text": "It will rain." }]
}`;

/** @param {HTMLElement} main */
export function rulesView(main) {
    const told = h('p.small', { role: 'status' });
    const area = h('textarea.mono', {
        rows: '14',
        'aria-label': 'Rules as JSON',
        value: program.rules,
        placeholder: EXAMPLE,
        spellcheck: 'false'
    });
    const use = async (/** @type {string} */ text) => {
        try {
            await act('rules', { text });
            told.textContent = text.trim() ? 'These rules answer from now on.' : 'Every question waits for you.';
        } catch (error) {
            told.textContent = said(error);
        }
    };
    const none = () => {
        area.value = '';
        use('');
    };
    main.className = '';
    fill(
        main,
        h(
            'div.column',
            null,
            h('h1', null, 'Answering rules'),
            h(
                'p.soft',
                null,
                'The first rule whose “when” occurs in a question answers it, for all connections, before a card appears; ',
                'a rule without “when” answers everything. They last as long as the program.'
            ),
            h(
                'form.card.column',
                {
                    onsubmit: (/** @type {Event} */ event) => {
                        event.preventDefault();
                        use(area.value);
                    }
                },
                area,
                h(
                    'div.row',
                    null,
                    h('button.button.main', { type: 'submit' }, 'Use these rules'),
                    h('button.button', { type: 'button', onclick: none }, 'No rules')
                ),
                told
            )
        )
    );
    let seen = program.rules;
    const stop = listen(kinds => {
        if (!area.isConnected) return stop();
        // Rules that another page has set; a draft here stays.
        if (kinds.has('rules') && area.value === seen) area.value = program.rules;
        seen = program.rules;
    });
}
