import { expect, test } from 'vitest'
import { quoteStart } from './quote-start.ts'

test.each([
  ['> quoted'],
  ['  > quoted'],
  ['On Tue, 3 Jun 2025 at 10:00, Eve <eve@example.com> wrote:\n> quoted'],
  ['Am 03.06.2025 um 10:00 schrieb Eve:\n> quoted'],
  ['Le mar. 3 juin 2025 à 10:00, Eve a écrit :\n> quoted'],
  ['---------- Forwarded message ---------\nFrom: Eve <eve@example.com>'],
  ['-----Original Message-----\nFrom: Eve'],
  ['Begin forwarded message:\nquoted'],
  ['________________________________\nFrom: Eve <eve@example.com>'],
  ['From: Eve <eve@example.com>\nSent: Tuesday'],
])('finds the quote of %j', (quote) => {
  const own = 'Subject: Hi\n\nPlease read this.\n\n'
  expect(quoteStart(`${own}${quote}\nmore`)).toBe(own.length)
})

test.each([['Subject: On Monday: call\n\nOn Monday I am away.'], ['a > b'], ['-- \nAda'], ['']])('finds none in %j', (text) => {
  expect(quoteStart(text)).toBe(-1)
})

test('takes time in proportion to a long text', () => {
  expect(quoteStart(`${'On a\n'.repeat(40_000)}${'-'.repeat(100_000)}${' '.repeat(50_000)}`)).toBe(-1)
})
