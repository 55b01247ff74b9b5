import { describe, expect, test } from 'vitest'
import { jsonAsMeant } from './json-as-meant.ts'

const schema = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    price: { type: 'number' },
    open: { type: 'boolean' },
    name: { type: 'string' },
    tags: { type: 'array', items: { type: 'string' } },
    lines: { type: 'array', items: { type: 'object', properties: { count: { type: 'integer' } } } },
    place: { type: 'object', properties: { x: { type: 'number' } }, additionalProperties: { type: 'boolean' } },
    either: { anyOf: [{ type: 'integer' }, { type: 'string' }] },
    one: { anyOf: [{ type: 'array', items: { type: 'integer' } }, { type: 'integer' }] },
    any: {},
  },
}

describe('jsonAsMeant', () => {
  test.each<[string, object, object]>([
    ['a whole number', { id: '7' }, { id: 7 }],
    ['a number', { price: ' 1.5 ' }, { price: 1.5 }],
    ['a boolean', { open: 'True' }, { open: true }],
    ['a list', { tags: '["a"]' }, { tags: ['a'] }],
    ['items of a list', { lines: [{ count: '2' }] }, { lines: [{ count: 2 }] }],
    ['one item in place of a list', { lines: '{"count":"2"}' }, { lines: [{ count: 2 }] }],
    ['one item that is no text', { lines: { count: 2 } }, { lines: [{ count: 2 }] }],
    ['an object', { place: '{"x":"1","shown":"false"}' }, { place: { x: 1, shown: false } }],
    ['a variant', { one: '[1,"2"]' }, { one: [1, 2] }],
    ['another variant', { one: '3' }, { one: 3 }],
  ])('reads %s', (_name, given, meant) => {
    expect(jsonAsMeant(schema, given)).toEqual(meant)
  })

  test.each<object>([
    { id: 7, price: 1, open: false, name: 'a', tags: ['a'], lines: [], place: { x: 1 }, either: 'a', one: 1, any: '7' },
    { name: '7' },
    { name: '["a"]' },
    { either: '7' },
    { any: '["a"]' },
    { unknown: '7' },
    { id: '7.5' },
    { id: '' },
    { id: 'seven' },
    { id: '12345678901234567890' },
    { open: 'yes' },
    { tags: 'a, b' },
    { tags: '[a' },
    { place: '[1]' },
    { id: null, tags: null },
  ])('leaves %j as it is', (given) => {
    expect(jsonAsMeant(schema, given)).toEqual(given)
  })
})
