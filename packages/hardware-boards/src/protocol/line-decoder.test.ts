import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createLineDecoder, LINE_BYTES_MAX } from './line-decoder.ts'

function decoded(...chunks: Uint8Array[]): string[] {
  const lines: string[] = []
  const decode = createLineDecoder((line) => lines.push(line))
  for (const chunk of chunks) decode(chunk)
  return lines
}

describe('createLineDecoder', () => {
  test('returns the same lines however the bytes are cut', () => {
    const bytes = fc.array(fc.oneof(fc.constant(0x0a), fc.constant(0x0d), fc.integer({ min: 0, max: 255 })), { maxLength: 300 })
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(40), { maxLength: 30 }), (all, cuts) => {
        const whole = Uint8Array.from(all)
        const chunks: Uint8Array[] = []
        let start = 0
        for (const cut of cuts) {
          chunks.push(whole.subarray(start, start + cut))
          start += cut
        }
        chunks.push(whole.subarray(start))
        const expected = Buffer.from(whole).toString('latin1').split('\n').slice(0, -1)
        const wanted = expected.map((line) => Buffer.from(line, 'latin1').toString('utf8').replace(/\r$/, ''))
        expect(decoded(...chunks)).toEqual(wanted)
      }),
    )
  })

  test('lets the caller reuse a chunk', () => {
    const lines: string[] = []
    const decode = createLineDecoder((line) => lines.push(line))
    const chunk = Buffer.from('half')
    decode(chunk)
    chunk.fill('x')
    decode(Buffer.from(' a line\n'))
    expect(lines).toEqual(['half a line'])
  })

  test.each([
    ['in one piece', [LINE_BYTES_MAX + 1]],
    ['in many', Array.from({ length: 100 }, () => 1000)],
  ])('drops a line that is too long, %s, and reads the next one', (_how, sizes) => {
    const chunks = sizes.map((size) => Buffer.alloc(size, 'x'))
    expect(decoded(...chunks, Buffer.from('\nafter\n'))).toEqual(['after'])
  })

  test('reads a line of the maximum length', () => {
    const line = 'x'.repeat(LINE_BYTES_MAX)
    expect(decoded(Buffer.from(`${line}\n`))).toEqual([line])
    expect(decoded(Buffer.from(line.slice(0, 100)), Buffer.from(`${line.slice(100)}\n`))).toEqual([line])
  })
})
