import { describe, expect, test } from 'vitest'
import { silence, tone } from './testing/index.ts'
import { PRE_ROLL_MS, rms, type Utterance, Utterances, wavOf } from './utterances.ts'

const BYTES_OF_MS = 32
const options = { energyThreshold: 0.01, silenceTimeoutMs: 1000, maxCaptureMs: 5000 }
const LOUD = 6000

/** The utterances in a sound that arrives in pieces of one size. */
function heard(sounds: readonly Uint8Array[], pieceBytes = 999, changes: Partial<typeof options> = {}): Utterance[] {
  const utterances = new Utterances({ ...options, ...changes })
  const sound = Buffer.concat(sounds)
  const found: Utterance[] = []
  for (let at = 0; at < sound.length; at += pieceBytes) found.push(...utterances.push(sound.subarray(at, at + pieceBytes)))
  return found
}
/** Noise of a loudness, the same in each run. */
function noise(level: number, ms: number): Uint8Array {
  const samples = new Int16Array(ms * 16)
  let state = 7
  for (let index = 0; index < samples.length; index += 1) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    samples[index] = Math.round((state / 2 ** 30 - 1) * level * Math.sqrt(3) * 32_768)
  }
  return new Uint8Array(samples.buffer)
}
function mixed(...sounds: readonly Uint8Array[]): Uint8Array {
  const views = sounds.map((sound) => new Int16Array(Uint8Array.from(sound).buffer))
  const samples = new Int16Array(Math.max(...views.map(({ length }) => length)))
  for (let index = 0; index < samples.length; index += 1) samples[index] = views.reduce((sum, view) => sum + (view[index] ?? 0), 0)
  return new Uint8Array(samples.buffer)
}

describe('an utterance', () => {
  test.each([1, 2, 639, 640, 641, 100_000])('is found in pieces of %i bytes', (pieceBytes) => {
    const found = heard([silence(2000), tone(LOUD, 800), silence(1500), tone(LOUD, 400), silence(1500)], pieceBytes)
    expect(found.map(({ speechMs, isCut }) => [speechMs, isCut])).toEqual([
      [800, false],
      [400, false],
    ])
  })

  test('has half a second before the first loud sample, and the silence that ended it', () => {
    const [utterance] = heard([silence(2000), tone(LOUD, 800), silence(1500)])
    expect(utterance?.pcm.length).toBe((PRE_ROLL_MS + 800 + 1000) * BYTES_OF_MS)
    expect(utterance?.beginMs).toBe(1500)
    expect(utterance?.endMs).toBe(3800)
    const loud = new Int16Array(Uint8Array.from(utterance?.pcm ?? []).buffer).findIndex((sample) => sample !== 0)
    expect(loud).toBe(PRE_ROLL_MS * 16)
  })

  test('goes on over pauses that are shorter than the time-out', () => {
    const found = heard([silence(1000), tone(LOUD, 300), silence(900), tone(LOUD, 300), silence(1000)])
    expect(found.map(({ speechMs }) => speechMs)).toEqual([600])
  })

  test('is cut at its longest, and the next one goes on from there', () => {
    const babble = Array.from({ length: 20 }, () => [tone(LOUD, 400), silence(100)]).flat()
    const found = heard([silence(1000), ...babble, silence(1500)])
    expect(found.map(({ isCut, beginMs, endMs }) => [isCut, beginMs, endMs])).toEqual([
      [true, 500, 5500],
      [true, 5500, 10_500],
      [false, 10_500, 11_900],
    ])
  })

  test('is no sound that stays the same', () => {
    const found = heard([silence(1000), tone(LOUD, 30_000)], 999, { maxCaptureMs: 30_000 })
    expect(found.map(({ isCut, endMs }) => [isCut, endMs < 9000])).toEqual([[false, true]])
  })

  test('ends in steady noise that is louder than the threshold', () => {
    const speech = Buffer.concat([silence(5000), tone(LOUD, 800), silence(3000), tone(LOUD, 400), silence(3000)])
    const found = heard([mixed(speech, noise(0.03, 12_200))])
    expect(found.filter(({ isCut }) => !isCut).map(({ endMs }) => Math.round(endMs / 1000))).toEqual([7, 10])
  })
})

test('rms is the loudness of samples between -1 and 1', () => {
  expect(rms(tone(16_384, 20))).toBeCloseTo(0.5)
  expect(rms(tone(0, 20))).toBe(0)
  expect(rms(new Uint8Array())).toBe(0)
})

test('wavOf writes the header of 16-bit samples of one channel', () => {
  const wav = Buffer.from(wavOf(tone(1, 1000)))
  expect(wav.length).toBe(44 + 32_000)
  expect([wav.toString('latin1', 0, 4), wav.toString('latin1', 8, 16), wav.toString('latin1', 36, 40)]).toEqual([
    'RIFF',
    'WAVEfmt ',
    'data',
  ])
  expect([wav.readUInt32LE(4), wav.readUInt16LE(22), wav.readUInt32LE(24), wav.readUInt16LE(34), wav.readUInt32LE(40)]).toEqual([
    32_036, 1, 16_000, 16, 32_000,
  ])
})
