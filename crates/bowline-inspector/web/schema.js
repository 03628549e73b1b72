// @ts-check
/**
 * What a schema allows, as far as a form has to know. Schemas are those of strangers: every step here
 * costs time in proportion to the schema, however its references branch or return.
 */
import { isObject } from './json.js';

/**
 * @typedef {{[name: string]: any, title?: string, description?: string, format?: string,
 *   properties?: Record<string, any>, required?: string[], enum?: any[], enumNames?: string[]}} Schema
 * @typedef {{it: Schema, types: string[], nullable: boolean, choices: Schema[] | undefined}} Shape
 */

/** The most parts of an `allOf` and choices of an `anyOf` that are read. */
const MOST_PARTS = 64;

/** What references lead to, by the schema that they are in. @type {WeakMap<object, Map<string, Schema>>} */
const followed = new WeakMap();

/**
 * A schema with its references and `allOf` resolved, one level.
 * @param {unknown} schema @param {unknown} root @param {string[]} [open] references that lead here @returns {Schema}
 */
export function resolve(schema, root, open = []) {
    if (schema === false) return { not: {} };
    if (!isObject(schema)) return {};
    /** @type {Schema} */
    let it = schema;
    if (typeof it.$ref === 'string') {
        const { $ref, ...rest } = it;
        it = merge(rest, follow($ref, root, open));
    }
    if (Array.isArray(it.allOf)) {
        const { allOf, ...rest } = it;
        it = allOf.slice(0, MOST_PARTS).reduce((all, part) => merge(all, resolve(part, root, open)), rest);
    }
    return it;
}

/** @param {string} reference @param {unknown} root @param {string[]} open @returns {Schema} */
function follow(reference, root, open) {
    // A reference that leads to itself adds nothing.
    if (!reference.startsWith('#') || !isObject(root) || open.includes(reference)) return {};
    let known = followed.get(root);
    if (!known) followed.set(root, (known = new Map()));
    let found = known.get(reference);
    if (!found) known.set(reference, (found = resolve(at(reference, root), root, [...open, reference])));
    return found;
}

/** @param {string} reference @param {unknown} root @returns {unknown} */
function at(reference, root) {
    let found = root;
    for (const part of reference.slice(1).split('/').filter(Boolean)) {
        let name = part;
        try {
            name = decodeURIComponent(part);
        } catch {
            // A name with a percent sign in it.
        }
        name = name.replace(/~1/g, '/').replace(/~0/g, '~');
        if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
        found = /** @type {Record<string, unknown>} */ (found)[name];
    }
    return found;
}

/**
 * Both at once; where they differ, the first one counts. @param {Schema} one @param {Schema} other @returns {Schema}
 */
function merge(one, other) {
    const all = { ...other, ...one };
    if (one.properties && other.properties) all.properties = { ...other.properties, ...one.properties };
    if (one.required || other.required) all.required = [...new Set([...names(other), ...names(one)])];
    return all;
}

/** @param {Schema} it */
const names = it => (Array.isArray(it.required) ? it.required : []);

/** @param {Schema} it @returns {string[]} */
export function typesOf(it) {
    if (Array.isArray(it.type)) return it.type.filter(one => typeof one === 'string');
    if (typeof it.type === 'string') return [it.type];
    return it.properties ? ['object'] : it.items ? ['array'] : [];
}

/**
 * What a schema allows besides null, and whether null. @param {unknown} schema @param {unknown} root @returns {Shape}
 */
export function shape(schema, root) {
    let it = resolve(schema, root);
    let nullable = false;
    // Each round takes a choice of one away; a schema that returns to itself ends as it is.
    for (let round = 0; round < 8; round++) {
        const types = typesOf(it);
        nullable ||=
            types.includes('null') || it.nullable === true || (Array.isArray(it.enum) && it.enum.includes(null));
        const given = [it.oneOf, it.anyOf].find(Array.isArray);
        const real = types.filter(type => type !== 'null');
        if (!given) {
            const choices = real.length > 1 && !it.enum ? real.map(type => ({ ...it, type, title: type })) : undefined;
            return { it, types: real, nullable, choices };
        }
        const choices = given.slice(0, MOST_PARTS).filter(one => resolve(one, root).type !== 'null');
        nullable ||= choices.length < Math.min(given.length, MOST_PARTS);
        if (choices.length !== 1) return { it, types: real, nullable, choices: choices.length ? choices : undefined };
        const { anyOf, oneOf, ...rest } = it;
        it = merge(rest, resolve(choices[0], root));
    }
    return { it: {}, types: [], nullable, choices: undefined };
}

/** What a field takes, in words. @param {unknown} schema @param {unknown} root */
export function kind(schema, root) {
    const { it, types, choices, nullable } = shape(schema, root);
    const word = it.enum ? 'choice' : choices ? 'one of several' : (it.format ?? (types.join(' or ') || 'any'));
    return nullable ? `${word} or null` : String(word);
}
