import toml from '@iarna/toml'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseToml } from '../toml/parse-toml.ts'
import { formatLiteral } from './toml-literal.ts'
import { writeHeader, writeValue } from './write-toml.ts'

const library = (value: unknown): string => toml.stringify.value(value as never)
const read = async (text: string): Promise<unknown> => (await parseToml(`value = ${text}`, '')).value

test.each([['a text'], ['tab\tand "quotes"'], [true], [80], [-0.5], [['a', 'b']], [{ a: 1, b: 'c' }], [new Date(0)]])(
  'the library writes %j',
  async (value) => {
    expect(await writeValue(value)).toBe(library(value))
  },
)

describe('our own literal replaces what the library writes for', () => {
  test.each<[string, unknown]>([
    ['a second control character', 'a\u0001b\u0002c'],
    ['a list of mixed kinds that begins with none', [undefined, 1]],
    ['a list with a value that is not a number', ['a', null]],
    ['marks that change the direction', 'a\u202eb'],
    ['an isolate', '\u2066x\u2069'],
    ['digits, in groups', 8080],
    ['digits in a list', [70_000]],
    ['a list that the library writes over several lines', Array.from({ length: 9 }, (_, at) => `entry-${at}`)],
    ['a small number', 1e-7],
    ['a whole number beyond 2^53', 2n ** 60n],
    ['an undecoded character', '\ufffd'],
    ['DEL and C1', '\u007f\u0085'],
  ])('%s', async (_, value) => {
    expect(await writeValue(value)).toBe(formatLiteral(value))
    expect(() => expect(library(value)).toBe(formatLiteral(value))).toThrow()
  })
})

test('a text that could deceive a reader is escaped, and is the same text', async () => {
  const text = 'allow = "\u202eeve\u202c"'
  const literal = await writeValue(text)
  expect(literal).toMatch(/^[\x20-\x7e]*$/)
  expect(await read(literal)).toBe(text)
})

test('every value that is written is read back', async () => {
  const leaf = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: 'binary' }).map((text) => text.toWellFormed()),
    fc.boolean(),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true }),
  )
  const value = fc.oneof(leaf, fc.array(leaf, { maxLength: 4 }), fc.dictionary(fc.string({ unit: 'grapheme' }), leaf, { maxKeys: 4 }))
  await fc.assert(
    fc.asyncProperty(value, async (given) => {
      expect(formatLiteral(await read(await writeValue(given)))).toBe(formatLiteral(given))
    }),
    { seed: 5, numRuns: 200 },
  )
})

test.each([
  [['gateway'], '[gateway]'],
  [['agents', 'a b'], '[agents."a b"]'],
  [['a', '__proto__'], '[a.__proto__]'],
  [['a', '\u0001\u0002'], '[a."\\u0001\\u0002"]'],
  [['a', 'x\u202ey'], '[a."x\\u202ey"]'],
])('the header of %j is %s', async (names, header) => {
  expect(await writeHeader(names)).toBe(header)
})
