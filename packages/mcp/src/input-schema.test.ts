import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { inputSchema } from './input-schema.ts'

describe('inputSchema', () => {
  test('keeps what a model needs to make a call', () => {
    const schema = {
      type: 'object',
      description: 'A search.',
      properties: {
        text: { type: 'string', description: 'What to find.', minLength: 1, default: 'x' },
        kind: { enum: ['a', 'b'] },
        tags: { type: 'array', items: { type: 'string' }, maxItems: 3 },
        by: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
        either: { anyOf: [{ type: 'string' }, { type: 'number' }] },
      },
      required: ['text'],
    }
    expect(inputSchema(schema)).toEqual(schema)
  })

  test('leaves out what some model APIs reject', () => {
    expect(
      inputSchema({
        $schema: 'http://json-schema.org/draft-07/schema#',
        type: 'object',
        oneOf: [{ required: ['a'] }],
        properties: {
          a: { type: ['string', 'null'], pattern: '(a+)+$', format: 'weird' },
          list: { type: 'array' },
          'bad name!': { type: 'string' },
          fixed: { const: 1 },
          odd: { type: 'any' },
        },
        required: ['a', 'bad name!', 'missing'],
        additionalProperties: false,
      }),
    ).toEqual({
      type: 'object',
      properties: { a: { type: 'string' }, list: { type: 'array', items: {} }, fixed: { enum: [1] }, odd: {} },
      required: ['a'],
    })
  })

  test('follows references within the schema, and ends references to themselves', () => {
    const point = { type: 'object', properties: { x: { type: 'number' } } }
    const tree = {
      type: 'object',
      properties: { left: { $ref: '#/$defs/tree' }, at: { allOf: [{ $ref: '#/$defs/point' }], description: 'Here.' } },
    }
    const schema = {
      type: 'object',
      properties: { root: { $ref: '#/$defs/tree' }, far: { $ref: 'https://h.example/s' } },
      $defs: { point, tree },
    }
    expect(inputSchema(schema)).toEqual({
      type: 'object',
      properties: { root: { type: 'object', properties: { left: {}, at: { ...point } } }, far: {} },
    })
    expect(inputSchema({ properties: { self: { $ref: '#' } } })).toMatchObject({ properties: { self: {} } })
  })

  test('bounds a schema that is wide, deep or refers to itself twice in each step', () => {
    const both = { type: 'object', properties: Object.fromEntries([...'abcdefgh'].map((name) => [name, { $ref: '#/$defs/both' }])) }
    const chain = Object.fromEntries(
      Array.from({ length: 30 }, (_, at) => [
        `d${at}`,
        { properties: { a: { $ref: `#/$defs/d${at + 1}` }, b: { $ref: `#/$defs/d${at + 1}` } } },
      ]),
    )
    let deep: object = { type: 'string' }
    for (let level = 0; level < 500; level++) deep = { type: 'array', items: deep }
    for (const schema of [
      { properties: { a: { $ref: '#/$defs/both' } }, $defs: { both } },
      { properties: { a: { $ref: '#/$defs/d0' } }, $defs: chain },
      { properties: { deep } },
    ])
      expect(JSON.stringify(inputSchema(schema)).length).toBeLessThan(65_536)
  })

  test('makes an object schema of anything', () => {
    fc.assert(
      fc.property(fc.anything(), (anything) => {
        const schema = inputSchema(anything)
        expect(schema.type).toBe('object')
        expect(typeof schema.properties).toBe('object')
        JSON.stringify(schema)
      }),
    )
  })
})
