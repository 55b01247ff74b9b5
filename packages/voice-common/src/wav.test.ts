import { expect, test } from 'vitest'
import { toWav } from './wav.ts'

test('toWav writes the header of 16-bit samples of one channel, and the samples', () => {
  const wav = Buffer.from(toWav(Int16Array.from([1, -2, 32_767]), 16_000))
  expect([wav.toString('latin1', 0, 4), wav.toString('latin1', 8, 16), wav.toString('latin1', 36, 40)]).toEqual([
    'RIFF',
    'WAVEfmt ',
    'data',
  ])
  const rate = [wav.readUInt32LE(24), wav.readUInt32LE(28), wav.readUInt16LE(32)]
  expect(rate).toEqual([16_000, 32_000, 2])
  expect([wav.readUInt32LE(4), wav.readUInt16LE(20), wav.readUInt16LE(22), wav.readUInt16LE(34), wav.readUInt32LE(40)]).toEqual([
    42, 1, 1, 16, 6,
  ])
  expect([44, 46, 48].map((at) => wav.readInt16LE(at))).toEqual([1, -2, 32_767])
  expect(wav.length).toBe(50)
})
