import { expect, test } from 'vitest'
import { compareSurface, type Direction } from './compare.ts'
import { addSchema, type Items, type JsonSchema } from './schema-items.ts'

const itemsOf = (schema: JsonSchema, name = 'it'): Items => {
  const items: Items = {}
  addSchema(items, name, schema, { Node: { type: 'object', properties: { next: { $ref: '#/components/schemas/Node' } } } })
  return items
}
const compared = (before: JsonSchema, now: JsonSchema, direction: Direction): string[] =>
  compareSurface(itemsOf(before), itemsOf(now), direction).map(({ item, change }) => `${item} ${change}`)

const object = (properties: Record<string, JsonSchema>, required: string[] = []): JsonSchema => ({ type: 'object', properties, required })
const text: JsonSchema = { type: 'string' }
const tagged = (...tags: string[]): JsonSchema => ({ anyOf: tags.map((tag) => object({ type: { const: tag }, a: text }, ['type', 'a'])) })

test.each<[string, JsonSchema, JsonSchema]>([
  ['a new member', object({ a: text }), object({ a: text, b: text })],
  ['a new type of a tagged object', tagged('x'), tagged('x', 'y', 'z')],
  ['a whole number that may be any number', object({ a: { type: 'integer' } }), object({ a: { type: 'number' } })],
  ['a schema that refers to itself', { $ref: '#/components/schemas/Node' }, { $ref: '#/components/schemas/Node' }],
])('%s breaks neither writers nor readers', (what, before, now) => {
  expect(compared(before, now, 'in')).toEqual([])
  if (what !== 'a whole number that may be any number') expect(compared(before, now, 'out')).toEqual([])
})

test.each<[string, JsonSchema, JsonSchema, string]>([
  ['a removed member', object({ a: object({ b: text }) }), object({}), 'it.a was removed'],
  ['a removed element', { type: 'array', items: object({ a: text }) }, { type: 'array', items: object({}) }, 'it[].a was removed'],
  ['a removed type of a tagged object', tagged('x', 'y', 'z'), tagged('x', 'z'), 'it(y) was removed'],
  [
    'a removed member of free names',
    { type: 'object', additionalProperties: object({ a: text }) },
    { type: 'object', additionalProperties: object({}) },
    'it.*.a was removed',
  ],
  ['a removed variable', object({ a: { ...text, 'x-env': ['SVC_A'] } }), object({ a: text }), 'environment SVC_A was removed'],
])('%s breaks writers and readers, and is reported once', (_what, before, now, finding) => {
  for (const direction of ['in', 'out'] as const) expect(compared(before, now, direction)).toEqual([finding])
})

test.each<[string, JsonSchema, JsonSchema, string]>([
  ['a type that is no longer taken', object({ a: { type: ['string', 'number'] } }), object({ a: text }), 'it.a no longer takes number'],
  ['a value that is no longer taken', object({ a: { enum: ['x', 'y'] } }), object({ a: { enum: ['x'] } }), 'it.a no longer takes y'],
  ['a text that becomes a choice', object({ a: text }), object({ a: { enum: ['x'] } }), 'it.a no longer takes other values'],
  ['a member that becomes required', object({ a: text }), object({ a: text }, ['a']), 'it.a is now required'],
  ['a new required member', object({}), object({ a: text }, ['a']), 'it.a is new and required, so present uses lack it'],
])('%s breaks writers only', (_what, before, now, finding) => {
  expect(compared(before, now, 'in')).toEqual([finding])
  expect(compared(before, now, 'out')).toEqual([])
})

test.each<[string, JsonSchema, JsonSchema, string]>([
  ['a new type', object({ a: text }), object({ a: { anyOf: [text, { type: 'null' }] } }), 'it.a may now have the type null'],
  ['a member that may be absent', object({ a: text }, ['a']), object({ a: text }), 'it.a may now be absent'],
])('%s breaks readers only', (_what, before, now, finding) => {
  expect(compared(before, now, 'out')).toEqual([finding])
  expect(compared(before, now, 'in')).toEqual([])
})

test('a new value breaks no reader', () => {
  expect(compared(object({ a: { enum: ['x'] } }), object({ a: { enum: ['x', 'y'] } }), 'out')).toEqual([])
})

test('a required member of a new part breaks nobody', () => {
  expect(compared(object({}), object({ a: object({ b: text }, ['b']) }), 'in')).toEqual([])
})

test('a required member of a new part of a request breaks nobody, although the name of the request has several words', () => {
  const [before, now] = [object({}), object({ a: object({ b: text }, ['b']) })].map((schema) =>
    itemsOf(schema, 'POST /it application/json'),
  )
  const request = { 'POST /it': {} }
  expect(compareSurface({ ...request, ...before }, { ...request, ...now }, 'in')).toEqual([])
})
