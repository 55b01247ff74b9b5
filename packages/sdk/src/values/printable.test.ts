import { expect, test } from 'vitest'
import { oneLine, printable, printableLine } from './printable.ts'

test('escapes terminal controls and keeps ordinary text', () => {
  expect(printable('\u001b[31mred\u001b]0;title\u0007')).toBe('\\u001b[31mred\\u001b]0;title\\u0007')
  expect(printable('abc\u202edcba')).toBe('abc\\u202edcba')
  expect(printable('line\r\nline\tgrüße 😀')).toBe('line\nline\tgrüße 😀')
  expect(printable('over\rwritten\u009b31m')).toBe('over\\u000dwritten\\u009b31m')
  expect(printable('\u061c\u200e\u200f\u2028\u2066')).toBe('\\u061c\\u200e\\u200f\\u2028\\u2066')
  expect(printableLine('one\r\ntwo\t\u202e')).toBe('one\\u000d\\u000atwo\\u0009\\u202e')
})

test('cuts a line between characters', () => {
  expect(oneLine('one\n two\t three', 80)).toBe('one two three')
  expect(oneLine('😀😀😀😀', 3)).toBe('😀😀…')
  expect(oneLine('😀😀😀', 3)).toBe('😀😀😀')
  expect(oneLine('', 3)).toBe('')
})
