// @ts-check
/** Makes elements. Text becomes text nodes, never markup. */
import { write } from './json.js';

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * @param {string} tag `name.class.class`
 * @param {Record<string, any> | null} [props] attributes; `on…` listens; `value`, `checked` and alike are set
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function h(tag, props, ...children) {
    const [name, ...classes] = tag.split('.');
    const element = document.createElement(name);
    if (classes.length) element.className = classes.join(' ');
    for (const [key, value] of Object.entries(props ?? {})) {
        if (value === null || value === undefined || value === false) continue;
        if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
        else if (key in element && typeof value !== 'string') /** @type {any} */ (element)[key] = value;
        else if (key === 'value') /** @type {any} */ (element).value = value;
        else element.setAttribute(key, value === true ? '' : textOf(value));
    }
    add(element, children);
    return element;
}

/** @param {Node} parent @param {any[]} children */
function add(parent, children) {
    for (const child of children.flat(9)) {
        if (child === null || child === undefined || child === false) continue;
        parent.appendChild(child instanceof Node ? child : document.createTextNode(textOf(child)));
    }
}

/**
 * What a server sent where a text belongs, whatever it is: `{"toString": 1}` cannot be made a string. @param {unknown} it
 * @returns {string}
 */
export function textOf(it) {
    if (it === undefined || it === null) return '';
    return typeof it === 'object' ? write(it) : String(it);
}

/** Replaces everything in an element. @param {Element} element @param {...(Child | Child[])} children */
export function fill(element, ...children) {
    element.replaceChildren();
    add(element, children);
}

/** @param {string} text */
export function toast(text) {
    const box = h('div.toast', { role: 'status' }, text);
    document.body.append(box);
    setTimeout(() => box.remove(), 2500);
}

/** @param {string} text */
export async function copy(text) {
    await navigator.clipboard.writeText(text);
    toast('Copied');
}

/** @param {string} name @param {BlobPart} text */
export function download(name, text) {
    const url = URL.createObjectURL(new Blob([text]));
    const link = h('a', { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A web address that may be followed, or nothing. @param {string} text */
export function safeLink(text) {
    try {
        const url = new URL(text);
        return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
    } catch {
        return null;
    }
}

/** @param {string} href @param {Child} [text] */
export function link(href, text) {
    const safe = safeLink(href);
    if (!safe) return h('span', { title: href }, text ?? href);
    return h('a', { href: safe, target: '_blank', rel: 'noopener noreferrer' }, text ?? href);
}

/** So many of something. @param {number} count @param {string} word */
export const many = (count, word) => `${count} ${word}${count === 1 ? '' : 's'}`;

/** @param {number} seconds */
export function time(seconds) {
    if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
    if (seconds < 1) return `${(seconds * 1000).toPrecision(3)} ms`;
    return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
}

/**
 * Shows one element for each key, in this order. Elements that are there already stay, with their focus and state.
 * @template T
 * @param {Element} parent @param {Iterable<T>} items @param {(item: T) => string | number} keyOf
 * @param {(item: T) => HTMLElement} make @param {(element: HTMLElement, item: T) => void} [update]
 */
export function keyed(parent, items, keyOf, make, update) {
    /** @type {Map<string, HTMLElement>} */
    const old = new Map();
    for (const child of parent.children) {
        if (child instanceof HTMLElement && child.dataset.key !== undefined) old.set(child.dataset.key, child);
    }
    /** @type {HTMLElement[]} */
    const wanted = [];
    for (const item of items) {
        const key = String(keyOf(item));
        let element = old.get(key);
        old.delete(key);
        if (element) update?.(element, item);
        else {
            element = make(item);
            element.dataset.key = key;
        }
        wanted.push(element);
    }
    for (const element of old.values()) element.remove();
    // Only what is out of place moves: an element that moves loses its focus.
    let at = parent.firstElementChild;
    for (const element of wanted) {
        if (at === element) at = element.nextElementSibling;
        else parent.insertBefore(element, at);
    }
}

/**
 * Tabs. Choosing one leaves the buttons in place, with the focus.
 * @param {string} label @param {[string, string][]} names @param {(name: string) => void} onchoose
 */
export function tabs(label, names, onchoose) {
    const buttons = names.map(([name, text]) =>
        h('button', { type: 'button', role: 'tab', onclick: () => onchoose(name) }, text)
    );
    const element = h('div.tabs', { role: 'tablist', 'aria-label': label }, buttons);
    return {
        element,
        /** @param {string} name */
        choose(name) {
            names.forEach(([one], at) => buttons[at].setAttribute('aria-selected', String(one === name)));
        }
    };
}

/**
 * A list that draws only what can be seen. A row whose key stays the same stays as it is.
 * @param {HTMLElement} box @param {number} height of a row
 * @param {(index: number) => HTMLElement} draw @param {(index: number) => string} keyOf
 */
export function virtual(box, height, draw, keyOf) {
    const inner = h('div');
    /** @type {Map<number, {key: string, row: HTMLElement}>} */
    let drawn = new Map();
    let count = 0;
    let scheduled = false;
    box.append(inner);
    const at = (/** @type {number} */ index) =>
        /** @type {HTMLElement | null} */ (drawn.get(index)?.row.firstElementChild ?? null);
    const show = () => {
        scheduled = false;
        const first = Math.max(0, Math.floor(box.scrollTop / height) - 4);
        const last = Math.min(count, Math.ceil((box.scrollTop + (box.clientHeight || 800)) / height) + 4);
        const { activeElement } = document;
        const active =
            activeElement instanceof HTMLElement && inner.contains(activeElement)
                ? Number(activeElement.dataset.index)
                : -1;
        /** @type {typeof drawn} */
        const next = new Map();
        for (let index = first; index < last; index++) {
            const key = keyOf(index);
            const old = drawn.get(index);
            if (old?.key === key) {
                next.set(index, old);
                continue;
            }
            const row = draw(index);
            const button = /** @type {HTMLElement} */ (row.firstElementChild);
            button.style.top = `${index * height}px`;
            button.dataset.index = String(index);
            next.set(index, { key, row });
        }
        for (const [index, { row }] of drawn) if (next.get(index)?.row !== row) row.remove();
        let before = /** @type {Element | null} */ (inner.firstElementChild);
        for (const { row } of next.values()) {
            if (row === before) before = row.nextElementSibling;
            else inner.insertBefore(row, before);
        }
        drawn = next;
        if (active >= 0 && document.activeElement !== at(active)) at(active)?.focus({ preventScroll: true });
    };
    const schedule = () => {
        if (!scheduled) {
            scheduled = true;
            requestAnimationFrame(show);
        }
    };
    box.addEventListener('scroll', schedule);
    new ResizeObserver(schedule).observe(box);
    box.addEventListener('keydown', event => {
        const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
        const from = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.index : undefined;
        if (!step || from === undefined) return;
        event.preventDefault();
        const to = Math.min(count - 1, Math.max(0, Number(from) + step));
        if (to * height < box.scrollTop) box.scrollTop = to * height;
        if ((to + 1) * height > box.scrollTop + box.clientHeight) box.scrollTop = (to + 1) * height - box.clientHeight;
        show();
        at(to)?.focus({ preventScroll: true });
    });
    return {
        /** @param {number} size */
        resize(size) {
            count = size;
            inner.style.height = `${size * height}px`;
            schedule();
        },
        draw: schedule,
        now: show
    };
}
