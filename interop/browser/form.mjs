// What forms make of drafts, in the browser: whatever is typed is sent as it is, or not at all.

import assert from 'node:assert/strict';

/** Drafts that do not fit their schema: a form that took one of them would change it. */
const MISFITS = [
    [{ properties: { a: { enum: ['red', 'green'] } } }, { a: 'purple' }],
    [{ properties: { a: { type: 'string' } } }, { a: 5 }],
    [{ properties: { a: { type: 'integer' } } }, { a: '5' }],
    [{ properties: { a: { type: 'array', items: { type: 'string' } } } }, { a: 'abc' }],
    [{ properties: { a: { type: 'array', items: { type: 'string' } } } }, { a: [1] }],
    [{ properties: { a: { type: 'object', properties: { b: { type: 'string' } } } } }, { a: 'abc' }],
    [{ properties: { a: { type: 'object', additionalProperties: { type: 'integer' } } } }, { a: { b: 'x', c: true } }],
    [{ properties: { a: { type: 'boolean' } } }, { a: 'yes' }],
    [{ properties: { a: { const: 'x' } } }, { a: 'y' }],
    [{ properties: { a: { anyOf: [{ type: 'integer' }, { type: 'boolean' }] } } }, { a: ['x'] }],
    [{ properties: { a: { type: 'string' } } }, { a: 'one\r\ntwo' }],
    [{ properties: { a: { type: 'string' } } }, 'text'],
    [{ properties: { a: { type: 'string' } } }, null],
    [{ properties: { a: { type: 'string' } } }, [1]]
];

/** Values that forms show, and return as they are. */
const FITS = [
    [{ properties: { a: { enum: ['red', 5, true] } } }, '{"a":5}'],
    [{ properties: { a: { type: 'number' } } }, '{"a":1.0}'],
    [{ properties: { a: { type: 'integer' } } }, '{"a":12345678901234567890}'],
    [{ properties: { a: { type: 'string' } }, required: ['a'] }, '{"a":null}'],
    [{ properties: { a: { type: 'boolean' } }, required: ['a'] }, '{}'],
    [{ properties: { a: { type: 'boolean' } }, required: ['a'] }, '{"a":false}'],
    [{ properties: { a: { type: 'string' } }, additionalProperties: false }, '{"a":"","hidden":{"b":[1]}}'],
    [{ properties: { a: { type: 'string' } } }, '{"a":"one\\ntwo"}'],
    [{ properties: { a: { type: 'array', items: { type: ['integer', 'null'] } } } }, '{"a":[1,null,3]}'],
    [
        {
            properties: {
                a: { anyOf: [{ type: 'integer' }, { type: 'object', properties: { kind: { const: 'x' } } }] }
            }
        },
        '{"a":{"kind":"x"}}'
    ],
    [{ type: 'object', additionalProperties: { type: 'string' } }, '{"__proto__":"x","b":"y"}'],
    [{ properties: { a: {} } }, '{"a":"5"}'],
    [{}, '{"anything":[1,{"b":null}]}'],
    [
        {
            properties: { a: { $ref: '#/$defs/t' } },
            $defs: { t: { type: 'object', properties: { t: { $ref: '#/$defs/t' } } } }
        },
        '{"a":{"t":{"t":{}}}}'
    ]
];

/** What becomes of a draft: shown as a form, or still JSON; and what would be sent. */
const take = (page, schema, draft) =>
    page.evaluate(
        async ([schema, draft]) => {
            const { form } = await import('/form.js');
            const made = form(schema, { initial: draft });
            return {
                ...made.draft(),
                problems: made.problems(),
                inputs: made.element.querySelectorAll('input, select, textarea').length
            };
        },
        [schema, draft]
    );

const compact = text => JSON.stringify(JSON.parse(text));

export async function forms(page, check) {
    await check('form', 'what does not fit stays JSON, as it was typed', async () => {
        for (const [schema, value] of MISFITS) {
            const text = JSON.stringify(value);
            const taken = await take(page, { type: 'object', ...schema }, { mode: 'form', text });
            assert.deepEqual([taken.mode, taken.text], ['json', text], `${JSON.stringify(schema)} ${text}`);
        }
        for (const text of ['{"a":1,"a":2}', '{"a":', ''])
            assert.equal((await take(page, { type: 'object' }, { mode: 'form', text })).text, text);
    });
    await check('form', 'what fits is shown and returned as it is', async () => {
        for (const [schema, text] of FITS) {
            const taken = await take(page, { type: 'object', ...schema }, { mode: 'form', text });
            assert.equal(taken.mode, 'form', text);
            // Numbers are compared as they are written.
            assert.equal(taken.text.replace(/\s/g, ''), text.replace(/\s/g, ''));
        }
    });
    await check('form', 'the mode of a draft survives, and JSON to form is refused in place', async () => {
        assert.equal((await take(page, { type: 'object' }, { mode: 'json', text: '{ "a" : 1 }' })).text, '{ "a" : 1 }');
        const refused = await page.evaluate(async () => {
            const { form } = await import('/form.js');
            const made = form(
                { type: 'object', properties: { colour: { enum: ['red'] } } },
                { initial: { mode: 'json', text: '{"colour":"purple"}' } }
            );
            document.body.append(made.element);
            made.element.querySelector('[role=tab]').click();
            const said = made.element.querySelector('[role=status]').textContent;
            made.element.remove();
            return { ...made.draft(), said };
        });
        assert.deepEqual([refused.mode, refused.text], ['json', '{"colour":"purple"}']);
        assert.match(refused.said, /cannot show colour without changing it/);
    });
    await check('form', 'unset, null and value are three states, for required fields too', async () => {
        const schema = {
            type: 'object',
            properties: { flag: { type: 'boolean' }, name: { type: 'string' } },
            required: ['flag', 'name']
        };
        const empty = await take(page, schema, undefined);
        assert.equal(compact(empty.text), '{}');
        assert.deepEqual(empty.problems, ['flag is required', 'name is required']);
        const typed = await page.evaluate(async schema => {
            const { form } = await import('/form.js');
            const made = form(schema, {});
            document.body.append(made.element);
            const input = made.element.querySelector('[data-field=name] input');
            input.value = 'Ada';
            input.dispatchEvent(new Event('input'));
            const [flag] = made.element.querySelectorAll('[data-field=flag] select:not(.state)');
            flag.value = '1';
            flag.dispatchEvent(new Event('change'));
            const texts = [made.text()];
            for (const state of ['null', 'unset', 'value']) {
                const select = made.element.querySelector('[data-field=name] select.state');
                select.value = state;
                select.dispatchEvent(new Event('change'));
                texts.push(made.text());
            }
            made.element.remove();
            return texts.map(it => JSON.parse(it));
        }, schema);
        assert.deepEqual(typed, [
            { flag: false, name: 'Ada' },
            { flag: false, name: null },
            { flag: false },
            { flag: false, name: 'Ada' }
        ]);
    });
    await check('form', 'a schema that never ends makes few editors', async () => {
        const node = {
            type: 'object',
            properties: Object.fromEntries(['a', 'b', 'c'].map(it => [it, { $ref: '#' }])),
            required: ['a', 'b', 'c']
        };
        for (const schema of [
            node,
            { anyOf: [{ $ref: '#' }, { $ref: '#' }] },
            { type: 'object', properties: { a: { allOf: [{ $ref: '#' }, { $ref: '#' }] } }, required: ['a'] },
            {
                type: 'object',
                properties: Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`p${at}`, { type: 'string' }]))
            }
        ]) {
            const { inputs } = await take(page, schema, undefined);
            assert.ok(inputs < 1000, `${inputs} inputs`);
        }
        const many = { type: 'object', properties: { a: { type: 'array', items: { type: 'integer' } } } };
        const text = JSON.stringify({ a: Array.from({ length: 10_000 }, (_, at) => at) });
        const taken = await take(page, many, { mode: 'form', text });
        assert.deepEqual([taken.mode, taken.text === text], ['json', true]);
    });
}
