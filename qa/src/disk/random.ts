/** Reproducible random numbers: the same seed gives the same numbers. */

/** Returns a number from 0 up to, but not including, 1. */
export type Random = () => number

/** Returns numbers from 0 up to, but not including, 1, by Marsaglia's xorshift on 32 bits. */
export function seededRandom(seed: number): Random {
  let state = Math.imul(seed + 1, 0x9e3779b1) | 1
  const next = (): number => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
  // Similar seeds start with similar numbers, so skip some.
  for (let at = 0; at < 8; at++) next()
  return next
}
