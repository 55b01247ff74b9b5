/** A WAV file with a tone, for tests. */
import { toWav } from '@sluice/voice-common'

const RATE = 24_000
const HZ = 440
const AMPLITUDE = 12_000

/** Returns mono 16-bit PCM of `ms` milliseconds at `rate` samples a second. */
export function toneWav(ms: number, rate = RATE): Uint8Array {
  const length = Math.round((ms / 1000) * rate)
  return toWav(
    Int16Array.from({ length }, (_, at) => Math.round(AMPLITUDE * Math.sin((2 * Math.PI * HZ * at) / rate))),
    rate,
  )
}
