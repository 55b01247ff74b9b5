import { describe, expect, test } from 'vitest'
import { RATE } from './audio.ts'
import { Utterances } from './utterances.ts'

const tone = (ms: number): Int16Array =>
  Int16Array.from({ length: (RATE * ms) / 1000 }, (_, at) => Math.round(8000 * Math.sin((2 * Math.PI * 440 * at) / RATE)))
const silence = (ms: number): Int16Array => new Int16Array((RATE * ms) / 1000)

function listen() {
  const found: number[] = []
  let begun = 0
  const utterances = new Utterances({
    threshold: 0.01,
    silenceMs: 600,
    utteranceMsMax: 5000,
    onSpeech: () => {
      begun++
    },
    onUtterance: (samples) => void found.push((samples.length / RATE) * 1000),
  })
  /** Pushes in pieces of odd sizes, as a network may deliver them. */
  const hear = (...parts: readonly Int16Array[]) => {
    for (const part of parts) for (let at = 0; at < part.length; at += 331) utterances.push(part.slice(at, at + 331))
  }
  return { found, hear, begun: () => begun }
}

describe('utterances', () => {
  test('speech between pauses is one utterance, with a lead and its pause', () => {
    const { found, hear, begun } = listen()
    hear(silence(2000), tone(1000), silence(1000), tone(500), silence(1000))
    expect(found).toHaveLength(2)
    expect(found[0]).toBeGreaterThanOrEqual(1900)
    expect(found[0]).toBeLessThanOrEqual(2100)
    expect(begun()).toBe(2)
  })

  test('a short pause does not end an utterance', () => {
    const { found, hear } = listen()
    hear(tone(400), silence(400), tone(400), silence(1000))
    expect(found).toHaveLength(1)
  })

  test('a click and silence are no speech', () => {
    const { found, hear, begun } = listen()
    hear(silence(500), tone(40), silence(5000))
    expect([found, begun()]).toEqual([[], 0])
  })

  test('endless speech is cut at the limit', () => {
    const { found, hear } = listen()
    hear(tone(12_000))
    expect(found).toHaveLength(2)
    for (const ms of found) expect(ms).toBeLessThanOrEqual(5020)
  })
})
