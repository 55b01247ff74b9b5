/** Random numbers from a seed, so that a run can be repeated, and how many of them a run draws. */

export interface Random {
  /** At least 0 and below 1. */
  next(): number
  /** A whole number from 0 to `bound - 1`. */
  below(bound: number): number
  /** A whole number, both ends included. */
  within(min: number, max: number): number
  chance(probability: number): boolean
  /** A random item of the list. Throws for an empty list. */
  pick<Item>(items: readonly Item[]): Item
  bytes(length: number): Uint8Array
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
  const below = (bound: number): number => Math.floor(next() * bound)
  return {
    next,
    below,
    within: (min, max) => min + below(max - min + 1),
    chance: (probability) => next() < probability,
    pick<Item>(items: readonly Item[]): Item {
      if (items.length === 0) throw new RangeError('cannot pick from an empty list')
      return items[below(items.length)] as Item
    },
    bytes: (length) => Uint8Array.from({ length }, () => below(256)),
  }
}

const SEED_VARIABLE = 'SLUICE_TEST_SEED'
const SEEDS_COUNT = 2 ** 31
const DRAWN = Math.floor(Math.random() * SEEDS_COUNT)

/** Returns the seed of this run of the tests: `SLUICE_TEST_SEED`, or else one that is drawn once. */
export function testSeed(): number {
  const given = process.env[SEED_VARIABLE]
  if (given === undefined || given === '') return DRAWN
  const seed = Number(given)
  if (/^\d+$/.test(given) && seed < SEEDS_COUNT) return seed
  throw new Error(
    `${SEED_VARIABLE} must be a whole number from 0 to ${SEEDS_COUNT - 1}; got '${given}'. Set it to the seed of an earlier run.`,
  )
}

/** Returns random numbers that follow from the seed of this run and from the name, so that the order of the tests changes nothing. */
export function testRandom(name = ''): Random {
  let seed = testSeed()
  for (const char of name) seed = Math.imul(seed ^ (char.codePointAt(0) ?? 0), 0x85eb_ca6b) >>> 0
  return createRandom(seed)
}

/** Returns a function in place of `Math.random`, as `testRandom` draws. */
export const seededRandom = (name?: string): (() => number) => testRandom(name).next

/** The share of a nightly run's random tries, sizes and repetitions that an ordinary run makes. */
const ORDINARY_SHARE = 1 / 4

/** Returns `count` in `pnpm nightly`, and in every other run a quarter of it, rounded up. */
export const effort = (count: number): number => (process.env.SLUICE_NIGHTLY === '1' ? count : Math.ceil(count * ORDINARY_SHARE))
