// @ts-check
/** Everything by keyboard: Ctrl+K. */
import { fill, h } from './dom.js';

/** @typedef {{label: string, hint?: string, run: () => void}} Command */

/** @param {() => Command[]} commands */
export function palette(commands) {
    const input = h('input', {
        type: 'text',
        role: 'combobox',
        'aria-expanded': 'true',
        'aria-controls': 'palette-list',
        'aria-label': 'Command',
        placeholder: 'Go to a tool, a view, a connection…',
        autocomplete: 'off'
    });
    const list = h('div', { role: 'listbox', id: 'palette-list', 'aria-label': 'Commands', tabindex: '-1' });
    const dialog = h('dialog.palette', { 'aria-label': 'Commands' }, input, list);
    /** @type {Command[]} */
    let all = [];
    /** @type {Command[]} */
    let found = [];
    let at = 0;
    const run = (/** @type {Command | undefined} */ it) => {
        dialog.close();
        it?.run();
    };
    const draw = () => {
        fill(
            list,
            found.slice(0, 60).map((it, index) =>
                h(
                    'div',
                    {
                        role: 'option',
                        id: `palette-${index}`,
                        'aria-selected': String(index === at),
                        onclick: () => run(it)
                    },
                    h('span.cut', null, it.label),
                    h('span.soft.small', null, it.hint)
                )
            )
        );
        input.setAttribute('aria-activedescendant', found.length ? `palette-${at}` : '');
        list.children[at]?.scrollIntoView({ block: 'nearest' });
    };
    const filter = () => {
        const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
        found = all.filter(it =>
            words.every((/** @type {string} */ word) => `${it.label} ${it.hint ?? ''}`.toLowerCase().includes(word))
        );
        at = 0;
        draw();
    };
    input.addEventListener('input', filter);
    input.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
        const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
        if (step) {
            event.preventDefault();
            at = Math.max(0, Math.min(Math.min(found.length, 60) - 1, at + step));
            draw();
        }
        if (event.key === 'Enter') {
            event.preventDefault();
            run(found[at]);
        }
    });
    dialog.addEventListener('click', (/** @type {MouseEvent} */ event) => {
        if (event.target === dialog) dialog.close();
    });
    document.body.append(dialog);
    return {
        open: () => {
            all = commands();
            input.value = '';
            filter();
            dialog.showModal();
            input.focus();
        }
    };
}
