import { describe, expect, test } from 'vitest'
import { OutputHead } from './output-head.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

describe('OutputHead', () => {
  test('joins a character that is split over two chunks', () => {
    const head = new OutputHead(100)
    const euro = bytes('€')
    head.push(euro.subarray(0, 1))
    head.push(euro.subarray(1))
    expect(head.text()).toBe('€')
  })

  test('keeps exactly bytesMax bytes, without half a character', () => {
    const exact = new OutputHead(4)
    exact.push(bytes('abcd'))
    expect([exact.text(), exact.isTruncated]).toEqual(['abcd', false])
    const cut = new OutputHead(5)
    cut.push(bytes('ab€€'))
    expect(cut.text()).toBe('ab€\n[… 3 more bytes were dropped]')
    const half = new OutputHead(4)
    half.push(bytes('ab€€'))
    expect(half.text()).toBe('ab\n[… 4 more bytes were dropped]')
  })

  test('shows bytes that are not UTF-8 as U+FFFD', () => {
    const head = new OutputHead(10)
    head.push(Uint8Array.of(0x61, 0xff))
    expect(head.text()).toBe('a\ufffd')
  })
})
