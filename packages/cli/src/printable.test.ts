import { expect, test } from 'vitest'
import { oneLine, printable } from './printable.ts'

test('what a terminal would obey is spelled out, what people write is not', () => {
  expect(printable('\u001b[31mred\u001b]0;title\u0007')).toBe('\\u001b[31mred\\u001b]0;title\\u0007')
  expect(printable('abc\u202edcba')).toBe('abc\\u202edcba')
  expect(printable('line\r\nline\tgrüße 😀')).toBe('line\nline\tgrüße 😀')
  expect(printable('over\rwritten\u009b31m')).toBe('over\\u000dwritten\\u009b31m')
})

test('a line is one line, cut between characters', () => {
  expect(oneLine('one\n two\t three', 80)).toBe('one two three')
  expect(oneLine('😀😀😀😀', 3)).toBe('😀😀…')
  expect(oneLine('😀😀😀', 3)).toBe('😀😀😀')
  expect(oneLine('', 3)).toBe('')
})
