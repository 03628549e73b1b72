// @ts-check
/** URI templates, RFC 6570 in full. */

const EXPRESSION = /\{([+#./;?&]?)([^{}]*)\}/g;
/** For each operator: what comes first, and between values. @type {Record<string, [string, string]>} */
const SIGNS = {
    '': ['', ','],
    '+': ['', ','],
    '#': ['#', ','],
    '.': ['.', '.'],
    '/': ['/', '/'],
    ';': [';', ';'],
    '?': ['?', '&'],
    '&': ['&', '&']
};

/** @typedef {{name: string, isList: boolean, length: number}} Variable */

/** @param {string} list @returns {Variable[]} */
const variablesOf = list =>
    list.split(',').map(it => {
        const [, name, star, length] = it.match(/^(.*?)(?:(\*)|:(\d{1,4}))?$/s) ?? [];
        return {
            name: name ?? it,
            isList: star !== undefined,
            length: length === undefined ? Infinity : Number(length)
        };
    });

/** The variables of a template; those of `{list*}` can be lists. @param {string} template @returns {Variable[]} */
export const variables = template => [...template.matchAll(EXPRESSION)].flatMap(found => variablesOf(found[2]));

/** @param {unknown} it */
const isSet = it => it !== undefined && it !== null;

/** A template with its values. @param {string} template @param {Record<string, any>} values */
export function expand(template, values) {
    return template.replace(EXPRESSION, (_, operator, list) => {
        const encode = /[+#]/.test(operator) ? reserved : strict;
        const [start, between] = SIGNS[operator];
        const isNamed = /[;?&]/.test(operator);
        const pair = (/** @type {string} */ name, /** @type {string} */ value) =>
            `${name}${operator === ';' && value === '' ? '' : '='}${value}`;
        const parts = variablesOf(list).flatMap(({ name, isList, length }) => {
            const value = Object.hasOwn(values, name) ? values[name] : undefined;
            if (!isSet(value)) return [];
            if (typeof value !== 'object') {
                const text = encode([...String(value)].slice(0, length).join(''));
                return isNamed ? [pair(name, text)] : [text];
            }
            const isArray = Array.isArray(value);
            /** @type {[string, string][]} */
            const all = Object.entries(value)
                .filter(([, it]) => isSet(it))
                .map(([key, it]) => [isArray ? name : encode(key), encode(String(it))]);
            if (!all.length) return [];
            if (isList) return all.map(([key, it]) => (isNamed ? pair(key, it) : isArray ? it : `${key}=${it}`));
            const text = all.flatMap(([key, it]) => (isArray ? [it] : [key, it])).join(',');
            return isNamed ? [pair(name, text)] : [text];
        });
        return parts.length ? start + parts.join(between) : '';
    });
}

/** Only what may stand anywhere in a URI stays. @param {string} text */
const strict = text =>
    encodeURIComponent(text.toWellFormed()).replace(
        /[!'()*]/g,
        it => `%${it.charCodeAt(0).toString(16).toUpperCase()}`
    );

/** What structures a URI stays too, and what is encoded already. @param {string} text */
const reserved = text =>
    text
        .toWellFormed()
        .replace(/%[0-9A-Fa-f]{2}|[^A-Za-z0-9_.~:/?#[\]@!$&'()*+,;=-]/gu, it => (it.length === 3 ? it : strict(it)));
