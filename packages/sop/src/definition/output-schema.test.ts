import { expect, test } from 'vitest'
import { schemaProblem } from './output-schema.ts'

test.each<unknown>([
  true,
  {},
  { type: 'object', properties: { a: { type: ['string', 'null'] }, required: { const: 1 } }, required: ['a'], additionalProperties: false },
  { $defs: { n: { minimum: 1 } }, items: { $ref: '#/$defs/n' }, minItems: 1, anyOf: [true, { pattern: '^a+$' }] },
  { 'x-ours': 7, constructor: 1, format: 'whatever' },
])('accepts a valid schema, unknown keywords included: %j', (schema) => {
  expect(schemaProblem(schema)).toBeUndefined()
})

test.each<[unknown, string]>([
  [null, 'must be an object, true or false'],
  [[], 'must be an object, true or false'],
  ['string', 'must be an object, true or false'],
  [{ type: 'strnig' }, 'type must be one of array, boolean, integer, null, number, object, string'],
  [{ type: ['string', 'x'] }, 'type must be one of array, boolean, integer, null, number, object, string'],
  [{ properties: { a: { type: 'text' } } }, 'properties.a.type must be one of array, boolean, integer, null, number, object, string'],
  [{ properties: [] }, 'properties must be an object'],
  [{ required: 'a' }, 'required must be an array of strings'],
  [{ oneOf: [true, { items: 7 }] }, 'oneOf.1.items must be an object, true or false'],
  [{ pattern: '(' }, 'pattern must be a regular expression'],
  [{ minItems: 1.5 }, 'minItems must be a whole number'],
  [{ maximum: '7' }, 'maximum must be a number'],
  [{ $ref: 'https://example.com/schema' }, '$ref must begin with #: nothing is loaded from elsewhere'],
])('refuses an invalid schema and names the place: %j', (schema, problem) => {
  expect(schemaProblem(schema)).toBe(problem)
})
