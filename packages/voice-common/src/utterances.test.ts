import { describe, expect, test } from 'vitest'
import { loudness, type Utterance, Utterances } from './utterances.ts'

const RATE = 8000
const LEAD_MS = 500
const options = { rate: RATE, threshold: 0.01, silenceMs: 1000, msMax: 5000, leadMs: LEAD_MS }

/** A square tone, whose loudness is `level` in each frame. */
const tone = (ms: number, level = 0.2): Int16Array =>
  Int16Array.from({ length: (RATE * ms) / 1000 }, (_, at) => Math.round(32_768 * level * (at % 8 < 4 ? 1 : -1)))
const silence = (ms: number): Int16Array => new Int16Array((RATE * ms) / 1000)
/** Noise of a loudness, the same in each run. */
function noise(level: number, ms: number): Int16Array {
  let state = 7
  return Int16Array.from({ length: (RATE * ms) / 1000 }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.round((state / 2 ** 30 - 1) * level * Math.sqrt(3) * 32_768)
  })
}
function joined(...sounds: readonly Int16Array[]): Int16Array {
  const all = new Int16Array(sounds.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const sound of sounds) {
    all.set(sound, at)
    at += sound.length
  }
  return all
}
const mixed = (one: Int16Array, other: Int16Array): Int16Array => one.map((sample, at) => sample + (other[at] ?? 0))
/** Words of 400 ms with short pauses between them. */
const babble = (ms: number): Int16Array => joined(...Array.from({ length: ms / 500 }, () => [tone(400), silence(100)]).flat())

/** The utterances in a sound that arrives in pieces of one size, and when each was noticed. */
function heard(sound: Int16Array, pieceSamples = 331, changes: Partial<typeof options> = {}) {
  const begun: number[] = []
  let pushed = 0
  const onSpeech = () => void begun.push(Math.round((pushed / RATE) * 1000))
  const utterances = new Utterances({ ...options, ...changes, onSpeech })
  const found: Utterance[] = []
  for (; pushed < sound.length; pushed += pieceSamples) found.push(...utterances.push(sound.subarray(pushed, pushed + pieceSamples)))
  return { found, begun }
}
const msOf = ({ samples }: Utterance) => (samples.length / RATE) * 1000

describe('an utterance', () => {
  test.each([1, 159, 160, 161, 50_000])('is found in pieces of %i samples', (pieceSamples) => {
    const { found, begun } = heard(joined(silence(2000), tone(800), silence(1500), tone(400), silence(1500)), pieceSamples)
    expect(found.map(({ isCut, endMs }) => [isCut, endMs])).toEqual([
      [false, 3800],
      [false, 5700],
    ])
    expect(begun).toHaveLength(2)
  })

  test('has the lead before its first loud sample, and the silence that ended it', () => {
    const [utterance] = heard(joined(silence(2000), tone(800), silence(1500))).found
    expect(utterance).toMatchObject({ beginMs: 2000 - LEAD_MS, endMs: 3800 })
    expect(utterance && msOf(utterance)).toBe(LEAD_MS + 800 + 1000)
    expect(utterance?.samples.findIndex((sample) => sample !== 0)).toBe((LEAD_MS / 1000) * RATE)
  })

  test('is noticed within a tenth of a second', () => {
    const [begunMs = 0] = heard(joined(silence(2000), tone(800), silence(1500)), 80).begun
    expect(begunMs - 2000).toBeLessThanOrEqual(100)
  })

  test('goes on over pauses that are shorter than the silence', () => {
    expect(heard(joined(silence(1000), tone(300), silence(900), tone(300), silence(1000))).found).toHaveLength(1)
  })

  test('is cut at its longest, and the next one goes on from there', () => {
    const { found } = heard(joined(silence(1000), babble(10_000), silence(1500)))
    expect(found.map(({ isCut, beginMs, endMs }) => [isCut, beginMs, endMs])).toEqual([
      [true, 500, 5500],
      [true, 5500, 10_500],
      [false, 10_500, 11_900],
    ])
  })

  test('is neither a click, nor silence, nor a steady sound', () => {
    expect(heard(joined(silence(500), tone(60), silence(5000)))).toEqual({ found: [], begun: [] })
    const { found } = heard(joined(silence(1000), tone(60_000)), 331, { msMax: 30_000 })
    expect(found.map(({ isCut, endMs }) => [isCut, endMs < 9000])).toEqual([[false, true]])
  })

  test('ends in steady noise that is louder than the threshold', () => {
    const speech = joined(silence(5000), tone(800), silence(3000), tone(400), silence(3000))
    const { found } = heard(mixed(speech, noise(0.03, 12_200)))
    // The first one is the noise, before it is known to be steady.
    expect(found.slice(1).map(({ isCut, endMs }) => [isCut, Math.round(endMs / 1000)])).toEqual([
      [false, 7],
      [false, 10],
    ])
  })
})

test('keeps no more than the lead and one utterance of an endless sound', () => {
  const utterances = new Utterances(options)
  const second = babble(1000)
  let longestMs = 0
  for (let passed = 0; passed < 600; passed += 1) for (const found of utterances.push(second)) longestMs = Math.max(longestMs, msOf(found))
  expect(longestMs).toBe(5000)
})

test('loudness is the root mean square of samples between -1 and 1', () => {
  expect(loudness(tone(20, 0.5))).toBeCloseTo(0.5)
  expect(loudness(silence(20))).toBe(0)
  expect(loudness(new Int16Array())).toBe(0)
})
