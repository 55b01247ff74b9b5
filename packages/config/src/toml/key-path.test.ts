import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatKeyPath, parseKeyPath, schemaPath } from './key-path.ts'

test.each([
  ['gateway.port', ['gateway', 'port']],
  ['provider.fallback[0].model', ['provider', 'fallback', 0, 'model']],
  ['cost.prices."gpt-4.1".input', ['cost', 'prices', 'gpt-4.1', 'input']],
  ["cost.prices.'a b'", ['cost', 'prices', 'a b']],
  ['a[0][12]', ['a', 0, 12]],
])('a path is read as it is written in the file: %s', (text, path) => {
  expect(parseKeyPath(text)).toEqual(path)
})

test.each(['', '.', 'a.', '.a', 'a..b', 'a b', '[0]', 'a[x]', 'a[-1]', 'a.[0]', 'a[1', '"a', '"\\x"', 'ä', 'a[9999999]', 'a.'.repeat(40)])(
  'refuses a text that is not a key path: %j',
  (text) => {
    expect(() => parseKeyPath(text)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  },
)

test('any path survives being written and read', () => {
  const step = fc.oneof(fc.string({ unit: 'grapheme' }), fc.nat({ max: 99_999 }))
  fc.assert(
    fc.property(fc.string(), fc.array(step, { maxLength: 20 }), (first, rest) => {
      const path = [first, ...rest]
      expect(parseKeyPath(formatKeyPath(path))).toEqual(path)
    }),
  )
})

test('a secret is bound to where the schema has it, not to its place in a list', () => {
  expect(schemaPath(parseKeyPath('provider.fallback[3].api_key'))).toBe('provider.fallback.api_key')
})
