import { toneWav } from '@sluice/speech/testing'
import { loudness, toWav } from '@sluice/voice-common'
import { describe, expect, test } from 'vitest'
import { fromMulaw, fromWav, RATE, toMulaw } from './audio.ts'

describe('μ-law', () => {
  test('has the values of G.711', () => {
    const known: readonly (readonly [byte: number, sample: number])[] = [
      [0x00, -32_124],
      [0x80, 32_124],
      [0xff, 0],
      [0x7f, 0],
      [0xf0, 120],
      [0x70, -120],
      [0xce, 988],
      [0x8f, 16_764],
    ]
    expect(fromMulaw(Uint8Array.from(known, ([byte]) => byte))).toEqual(Int16Array.from(known, ([, sample]) => sample))
  })

  test('each of its values encodes to itself', () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    // 0x7f and 0xff are both zero.
    expect([...toMulaw(fromMulaw(bytes))]).toEqual([...bytes].map((byte) => (byte === 0x7f ? 0xff : byte)))
  })

  test('every sample decodes to a value close to it', () => {
    const samples = Int16Array.from({ length: 65_536 }, (_, index) => index - 32_768)
    const decoded = fromMulaw(toMulaw(samples))
    const isFar = (sample: number, index: number): boolean =>
      Math.abs((decoded[index] ?? 0) - sample) > Math.max(4, Math.abs(sample) / 16 + 8, Math.abs(sample) - 32_124)
    expect(samples.filter(isFar)).toEqual(new Int16Array())
  })
})

describe('WAV', () => {
  test.each([8000, 16_000, 22_050, 24_000, 44_100, 48_000])('a tone at %i samples a second keeps its length and loudness', (rate) => {
    const samples = fromWav(toneWav(500, rate))
    expect(Math.abs(samples.length - RATE / 2)).toBeLessThanOrEqual(1)
    expect(loudness(samples)).toBeCloseTo(12_000 / 32_768 / Math.SQRT2, 1)
  })

  test.each([16_000, 22_050, 24_000, 44_100, 48_000])(
    'of sounds at %i samples a second, only those that a call carries are kept',
    (rate) => {
      const heardAt = (hz: number): number => {
        const sound = Int16Array.from({ length: rate }, (_, at) => Math.round(10_000 * Math.sin((2 * Math.PI * hz * at) / rate)))
        return loudness(fromWav(toWav(sound, rate)).slice(RATE / 4, (3 * RATE) / 4)) / loudness(sound)
      }
      for (const hz of [200, 1000, 3000]) expect(heardAt(hz), `${hz} Hz`).toBeCloseTo(1, 1)
      for (const hz of [4400, 5000, 7000]) expect(heardAt(hz), `${hz} Hz`).toBeLessThan(0.01)
    },
  )

  test('reads back the samples that it has written', () => {
    const samples = Int16Array.from({ length: 800 }, (_, index) => (index * 37) % 3000)
    expect(fromWav(toWav(samples, RATE))).toEqual(samples)
  })

  test('a size that is too large, as in files of unknown length, ends with the file', () => {
    const file = Buffer.from(toWav(Int16Array.from([1, 2, 3]), RATE))
    file.writeUInt32LE(0xffff_ffff, 40)
    expect(fromWav(file)).toEqual(Int16Array.from([1, 2, 3]))
  })

  test.each([
    ['no WAV file', Buffer.from('OggS and more')],
    [
      'a file with 8 bits',
      (() => {
        const file = Buffer.from(toWav(Int16Array.from([1]), RATE))
        file.writeUInt16LE(8, 34)
        return file
      })(),
    ],
    ['an empty file', Buffer.alloc(0)],
    ['a file without samples', Buffer.from(toWav(Int16Array.from([1]), RATE)).subarray(0, 36)],
  ])('%s is unavailable', (_what, file) => {
    expect(() => fromWav(file)).toThrow(/WAV|16-bit/)
  })
})
