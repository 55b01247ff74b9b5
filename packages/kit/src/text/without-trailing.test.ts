import { expect, test } from 'vitest'
import { withoutTrailing } from './without-trailing.ts'

test.each([
  ['https://example.org//', '/', 'https://example.org'],
  ['/a/b', '/', '/a/b'],
  ['///', '/', ''],
  ['', '/', ''],
])('%j without %j at its end is %j', (text, character, rest) => {
  expect(withoutTrailing(text, character)).toBe(rest)
})
