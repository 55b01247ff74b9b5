/** Random numbers that can be repeated by their seed. */

export interface Random {
  /** At least 0 and below 1. */
  next(): number
  /** A whole number, both ends included. */
  within(min: number, max: number): number
  chance(probability: number): boolean
  /** A random item of the list. */
  pick<Item>(items: readonly [Item, ...Item[]]): Item
}

/** The generator known as mulberry32. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    within: (min, max) => min + Math.floor(next() * (max - min + 1)),
    chance: (probability) => next() < probability,
    pick: (items) => items[Math.floor(next() * items.length)] ?? items[0],
  }
}
