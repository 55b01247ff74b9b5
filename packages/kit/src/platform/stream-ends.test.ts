import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { StreamEnds } from './stream-ends.ts'

function endsOf(bytesMax: number, ...pieces: (string | Uint8Array)[]): StreamEnds {
  const ends = new StreamEnds(bytesMax)
  for (const piece of pieces) ends.push(Buffer.from(piece))
  return ends
}

describe('StreamEnds', () => {
  test('joins a character that is split over two pieces', () => {
    const euro = Buffer.from('€')
    expect(endsOf(100, euro.subarray(0, 1), euro.subarray(1)).text()).toBe('€')
    expect(endsOf(3, euro.subarray(0, 1), euro.subarray(1)).text()).toBe('€')
  })

  test('keeps exactly bytesMax bytes, half of them from the end', () => {
    const whole = endsOf(4, 'abcd')
    expect([whole.text(), whole.isCut]).toEqual(['abcd', false])
    const cut = endsOf(4, 'ab', 'c', 'de')
    expect([cut.text(), cut.isCut]).toEqual(['ab\n[… 1 bytes were dropped …]\nde', true])
  })

  test('drops the characters that a cut divides', () => {
    expect(endsOf(8, 'ab€-----€yz').text()).toBe('ab\n[… 7 bytes were dropped …]\nyz')
  })

  test('shows bytes that are not UTF-8 as U+FFFD', () => {
    expect(endsOf(10, Uint8Array.of(0x61, 0xff)).text()).toBe('a\ufffd')
    expect(endsOf(8, Buffer.alloc(20, 0xbf)).text()).toMatch(/\n\ufffd$/)
  })

  test('keeps both ends of pieces of any size', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '\n') })), (bytesMax, pieces) => {
        const all = pieces.join('')
        const head = Math.ceil(bytesMax / 2)
        const tail = bytesMax - head
        const dropped = `\n[… ${all.length - bytesMax} bytes were dropped …]\n`
        expect(endsOf(bytesMax, ...pieces).text()).toBe(
          all.length <= bytesMax ? all : `${all.slice(0, head)}${dropped}${all.slice(all.length - tail)}`,
        )
      }),
    )
  })
})
