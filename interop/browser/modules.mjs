// Serves npm packages to a browser as they are: an import map in place of a bundler.

import { readFile } from 'node:fs/promises';
import { join, normalize } from 'node:path';

const PACKAGES = join(import.meta.dirname, 'node_modules');

/** What the packages of the host need. */
const NEEDED = [
    '@modelcontextprotocol/client',
    '@modelcontextprotocol/core',
    '@modelcontextprotocol/ext-apps',
    'eventsource',
    'eventsource-parser',
    'jose',
    'pkce-challenge',
    'zod'
];

/** The file of an entry of `exports` for a browser. */
function target(entry) {
    if (typeof entry !== 'object' || entry === null) return entry;
    for (const [condition, value] of Object.entries(entry)) {
        const found = ['browser', 'import', 'default'].includes(condition) && target(value);
        if (found) return found;
    }
    return undefined;
}

/** The import map of all packages, which are below `/npm/`. */
export async function importMap() {
    const imports = {};
    for (const name of NEEDED) {
        const { exports } = JSON.parse(await readFile(join(PACKAGES, name, 'package.json'), 'utf8'));
        for (const [path, entry] of Object.entries(exports)) {
            const file = target(entry);
            if (file?.endsWith('js') && !path.includes('*')) {
                imports[join(name, path)] = `/npm/${name}/${normalize(file)}`;
            }
        }
    }
    return JSON.stringify({ imports });
}

/** A file of a package, by its path below `/npm/`. */
export function moduleFile(path) {
    const file = normalize(join(PACKAGES, decodeURIComponent(path)));
    if (!file.startsWith(PACKAGES)) throw new Error(`${path} is outside the packages`);
    return readFile(file);
}
