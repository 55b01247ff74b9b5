import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FrameParser, frameOf, unescaped } from './frames.ts'

const framesIn = (text: string) => new FrameParser().push(Buffer.from(text, 'latin1'))
const bodies = (text: string) => framesIn(text).map((frame) => ('body' in frame ? frame.body : frame.kind))

describe('GDB frames', () => {
  test('encode and parse a packet with its checksum', () => {
    expect(Buffer.from(frameOf('m20000000,80')).toString()).toBe('$m20000000,80#83')
    expect(framesIn('$OK#9a')).toEqual([{ kind: 'packet', body: 'OK' }])
    expect(framesIn('$#00')).toEqual([{ kind: 'packet', body: '' }])
  })

  test.each(['$OK#9b', '$OL#9a', '$OK#zz'])('report a wrong checksum: %s', (text) => {
    expect(framesIn(text)).toEqual([{ kind: 'corrupt' }])
  })

  test('expand run lengths', () => {
    expect(bodies('$0* #7a')).toEqual(['0000'])
    expect(bodies('$0*"12#df')).toEqual(['00000012'])
  })

  test('replace escapes', () => {
    expect(unescaped('a}\x03}]b')).toBe('a#}b')
  })

  test('distinguish acknowledgements, notifications and packets', () => {
    expect(framesIn('+-%Stop:T05#99+$OK#9a').map(({ kind }) => kind)).toEqual(['ack', 'nak', 'notification', 'ack', 'packet'])
    expect(framesIn('%Stop:x#00')).toEqual([])
  })

  test('skip noise and a packet that is cut off', () => {
    expect(bodies('\x00\xff#12 junk$half$OK#9a')).toEqual(['OK'])
    expect(bodies('$OK#9$OK#9a')).toEqual(['OK'])
  })

  test('parse bytes in pieces of any size', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: fc.constantFrom(...'0123456789abcdefOKE;:,') })),
        fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
        (texts, sizes) => {
          const wire = Buffer.concat(texts.map(frameOf))
          const parser = new FrameParser()
          const seen: string[] = []
          for (let at = 0; at < wire.length; ) {
            const size = sizes.next().value ?? 1
            for (const frame of parser.push(wire.subarray(at, at + size))) if ('body' in frame) seen.push(frame.body)
            at += size
          }
          expect(seen).toEqual(texts)
        },
      ),
    )
  })

  test('parse any bytes into known frames', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2000 }), (bytes) => {
        const parser = new FrameParser()
        for (const frame of parser.push(bytes)) expect(['ack', 'nak', 'corrupt', 'packet', 'notification']).toContain(frame.kind)
      }),
    )
  })

  test('reject a packet without an end, even one that run lengths expand', () => {
    expect(() => framesIn(`$${'a'.repeat(16_385)}`)).toThrow(RangeError)
    expect(() => framesIn(`$a${'*~'.repeat(200)}`)).toThrow(RangeError)
    expect(() => framesIn('x'.repeat(100_000))).not.toThrow()
  })
})
