import fc from 'fast-check'
import { expect, test } from 'vitest'
import { linesOf, mentions, plainText, withoutAddress } from './text.ts'

test.each([
  ['\x02bold\x02 \x1ditalic\x0f', 'bold italic'],
  ['\x0304,12red\x03 5 apples', 'red 5 apples'],
  ['\x034,5x', 'x'],
  ['\x04ff0000red', 'red'],
  ['\x02beef', 'beef'],
  ['a\tb', 'a\tb'],
])('people see %j as %j', (text, seen) => {
  expect(plainText(text)).toBe(seen)
})

test('the nick is found only as a word of its own', () => {
  expect(mentions('hey Sluice, help', 'sluice')).toBe(true)
  expect(mentions('sluices and sluice_', 'sluice')).toBe(false)
  expect(withoutAddress('SLUICE: /stop', 'sluice')).toBe('/stop')
  expect(withoutAddress('sluices: x', 'sluice')).toBe('sluices: x')
})

test('lines have no control characters, are never empty and never too long', () => {
  expect(linesOf('one\r\n\r\n\x01VERSION\x01\ntwo', 100)).toEqual(['one', 'VERSION', 'two'])
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), fc.integer({ min: 60, max: 200 }), (text, max) => {
      for (const line of linesOf(text, max)) {
        expect(Buffer.byteLength(line)).toBeLessThanOrEqual(max)
        expect(line).not.toMatch(/[\r\n\0]/)
        expect(line.trim()).not.toBe('')
      }
    }),
  )
})
