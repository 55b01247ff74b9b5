import { expect, test } from 'vitest'
import { createOutputHead } from './output-head.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

test('a character split over two chunks comes out whole', () => {
  const head = createOutputHead(100)
  const euro = bytes('€')
  head.push(euro.subarray(0, 1))
  head.push(euro.subarray(1))
  expect(head.text()).toBe('€')
})

test('the limit is in bytes, exact, and cuts no character in half', () => {
  const exact = createOutputHead(4)
  exact.push(bytes('abcd'))
  expect([exact.text(), exact.truncated]).toEqual(['abcd', false])
  const cut = createOutputHead(5)
  cut.push(bytes('ab€€'))
  expect(cut.text()).toBe('ab€\n[… 3 more bytes were dropped]')
  const half = createOutputHead(4)
  half.push(bytes('ab€€'))
  expect(half.text()).toBe('ab\n[… 4 more bytes were dropped]')
})

test('bytes that are no text show as such', () => {
  const head = createOutputHead(10)
  head.push(Uint8Array.of(0x61, 0xff))
  expect(head.text()).toBe('a\ufffd')
})
