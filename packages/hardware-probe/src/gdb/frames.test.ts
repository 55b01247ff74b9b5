import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createFrames, frameOf, unescaped } from './frames.ts'

const framesIn = (text: string) => createFrames()(Buffer.from(text, 'latin1'))
const bodies = (text: string) => framesIn(text).map((frame) => ('body' in frame ? frame.body : frame.kind))

test('a packet carries the sum of its characters', () => {
  expect(Buffer.from(frameOf('m20000000,80')).toString()).toBe('$m20000000,80#83')
  expect(framesIn('$OK#9a')).toEqual([{ kind: 'packet', body: 'OK' }])
  expect(framesIn('$#00')).toEqual([{ kind: 'packet', body: '' }])
})

test.each(['$OK#9b', '$OL#9a', '$OK#zz'])('a wrong sum is told: %s', (text) => {
  expect(framesIn(text)).toEqual([{ kind: 'spoiled' }])
})

test('a run length repeats the character before it', () => {
  expect(bodies('$0* #7a')).toEqual(['0000'])
  expect(bodies('$0*"12#df')).toEqual(['00000012'])
})

test('an escape stands for another character', () => {
  expect(unescaped('a}\x03}]b')).toBe('a#}b')
})

test('acknowledgements, notifications and packets are told apart', () => {
  expect(framesIn('+-%Stop:T05#99+$OK#9a').map(({ kind }) => kind)).toEqual(['ack', 'nak', 'notification', 'ack', 'packet'])
  expect(framesIn('%Stop:x#00')).toEqual([])
})

test('noise and a packet that is broken off are passed over, up to the next whole one', () => {
  expect(bodies('\x00\xff#12 junk$half$OK#9a')).toEqual(['OK'])
  expect(bodies('$OK#9$OK#9a')).toEqual(['OK'])
})

test('bytes may come in any pieces', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom(...'0123456789abcdefOKE;:,') })),
      fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
      (texts, sizes) => {
        const wire = Buffer.concat(texts.map(frameOf))
        const push = createFrames()
        const seen: string[] = []
        for (let at = 0; at < wire.length; ) {
          const size = sizes.next().value ?? 1
          for (const frame of push(wire.subarray(at, at + size))) if ('body' in frame) seen.push(frame.body)
          at += size
        }
        expect(seen).toEqual(texts)
      },
    ),
  )
})

test('any bytes give frames or a RangeError, never more', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2000 }), (bytes) => {
      const push = createFrames()
      for (const frame of push(bytes)) expect(['ack', 'nak', 'spoiled', 'packet', 'notification']).toContain(frame.kind)
    }),
  )
})

test('a packet without an end is an error before it fills memory, by run lengths too', () => {
  expect(() => framesIn(`$${'a'.repeat(16_385)}`)).toThrow(RangeError)
  expect(() => framesIn(`$a${'*~'.repeat(200)}`)).toThrow(RangeError)
  expect(() => framesIn('x'.repeat(100_000))).not.toThrow()
})
