import { fromEnv, secretText, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { describeKey } from './describe-key.ts'
import { childKey, readKey, sectionKeys } from './schema-keys.ts'

const rest = v.objectWithRest({ a: v.string() }, v.number())

test.each([
  [v.string(), 'a string'],
  [v.pipe(v.string(), v.minLength(1)), 'a string that is not empty'],
  [v.pipe(v.string(), v.nonEmpty()), 'a string that is not empty'],
  [v.pipe(v.string(), v.minLength(2), v.maxLength(5)), 'a string, 2 to 5 characters'],
  [v.pipe(v.string(), v.minLength(3)), 'a string, at least 3 characters'],
  [v.pipe(v.string(), v.url()), 'a URL'],
  [v.pipe(v.string(), v.email()), 'an e-mail address'],
  [v.number(), 'a number'],
  [v.pipe(v.number(), v.maxValue(2)), 'a number of at most 2'],
  [v.pipe(whole(1, 5), v.minValue(2)), 'a whole number between 2 and 5'],
  [whole(1), 'a whole number of at least 1'],
  [v.boolean(), 'a boolean (true or false)'],
  [v.literal('x'), '"x"'],
  [v.picklist(['a', 'b']), 'one of "a", "b"'],
  [v.enum({ A: 'a', B: 'b' }), 'one of "a", "b"'],
  [v.array(v.string()), 'an array of strings'],
  [v.array(v.pipe(v.string(), v.url())), 'an array of URLs'],
  [v.pipe(v.array(whole(0, 9)), v.maxLength(3)), 'an array of whole numbers between 0 and 9, at most 3 entries'],
  [v.array(v.array(v.object({}))), 'an array of arrays'],
  [v.array(v.picklist(['a', 'b'])), 'an array of values, each one of "a", "b"'],
  [v.object({}), 'a table'],
  [v.record(v.string(), v.string()), 'a table'],
  [v.union([v.string(), v.array(v.string())]), 'a string or an array of strings'],
  [v.union([v.literal('a'), v.picklist(['b'])]), 'one of "a", "b"'],
  [v.unknown(), 'any value'],
  [v.pipe(v.string(), v.transform(Number), v.number(), v.minValue(5)), 'a string'],
  [v.optional(v.nullable(v.optional(v.string()))), 'a string'],
])('a schema is described by the values that the file may hold: %#', (schema, words) => {
  expect(describeKey(readKey(schema))).toBe(words)
})

test('finds metadata, defaults and meaning through every wrapper', () => {
  const key = readKey(v.optional(v.pipe(v.pipe(v.string(), fromEnv('A')), v.transform(String), v.description('The meaning.')), () => 'x'))
  expect(key).toMatchObject({ optional: true, fallback: 'x', metadata: { env: ['A'], envWins: true }, meaning: 'The meaning.' })
  expect(readKey(secretText({ env: ['B'] }))).toMatchObject({ optional: false, metadata: { secret: true, env: ['B'] } })
  expect(readKey(v.pipe(v.optional(v.string(), 'y'), v.metadata({ secret: true })))).toMatchObject({
    fallback: 'y',
    metadata: { secret: true },
  })
})

test('a path leads through tables, lists and names of any kind', () => {
  const top = readKey(v.object({ list: v.array(v.object({ map: v.record(v.string(), v.boolean()) })), rest }))
  const shapeAt = (...steps: (string | number)[]) => {
    let key: ReturnType<typeof childKey> = top
    for (const step of steps) key = key && childKey(key, step)
    return key?.shape.kind
  }
  expect(shapeAt('list', 7, 'map', 'anything')).toBe('flag')
  expect([shapeAt('list', 'x'), shapeAt('list', 0, 'nope'), shapeAt('rest', 0)]).toEqual([undefined, undefined, undefined])
  expect([shapeAt('rest', 'a'), shapeAt('rest', 'b')]).toEqual(['text', 'number'])
})

test('alternatives of tables are one table, in which what not all demand may be left out', () => {
  const schema = v.variant('kind', [
    v.object({ kind: v.literal('a'), size: v.number() }),
    v.object({ kind: v.literal('b'), size: v.string(), name: v.string() }),
  ])
  const keys = sectionKeys(schema)
  expect([...keys].map(([name, key]) => [name, describeKey(key), key.optional])).toEqual([
    ['kind', 'one of "a", "b"', false],
    ['size', 'a number or a string', false],
    ['name', 'a string', true],
  ])
})
