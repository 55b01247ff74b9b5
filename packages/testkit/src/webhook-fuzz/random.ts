/** Random numbers from a seed, so that a finding can be reproduced. */

/** A source of random numbers. */
export interface Random {
  /** A whole number from 0 to `bound - 1`. */
  below(bound: number): number
  chance(probability: number): boolean
  /** Throws for an empty list. */
  pick<Item>(items: readonly Item[]): Item
  bytes(length: number): Uint8Array
}

/** Marsaglia's xorshift with 32 bits of state: fast and uniform enough to choose mutations. */
export function createRandom(seed: number): Random {
  // The generator would stay at a state of zero.
  let state = Math.imul(seed ^ 0x9e37_79b9, 0x85eb_ca6b) >>> 0 || 1
  const next = (): number => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state
  }
  const below = (bound: number): number => next() % bound
  return {
    below,
    chance: (probability) => next() < probability * 0x1_0000_0000,
    pick(items) {
      const item = items[below(items.length)]
      if (item === undefined) throw new RangeError('cannot pick from an empty list')
      return item
    },
    bytes: (length) => Uint8Array.from({ length }, () => below(256)),
  }
}
