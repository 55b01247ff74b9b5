import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createRandom, seededRandom, testRandom, testSeed } from './random.ts'

beforeEach(() => void vi.stubEnv('SLUICE_TEST_SEED', '7'))
afterEach(() => void vi.unstubAllEnvs())

const draw = (next: () => number, count = 1000): number[] => Array.from({ length: count }, next)

describe('createRandom', () => {
  test('draws the same from the same seed, and other numbers from other seeds', () => {
    expect(draw(createRandom(1).next)).toEqual(draw(createRandom(1).next))
    expect(new Set(draw(createRandom(1).next).concat(draw(createRandom(2).next))).size).toBeGreaterThan(1990)
  })

  test('draws within the bounds, evenly', () => {
    const random = createRandom(3)
    for (const value of draw(random.next)) expect(value >= 0 && value < 1).toBe(true)
    expect(new Set(draw(() => random.below(3)))).toEqual(new Set([0, 1, 2]))
    expect(new Set(draw(() => random.within(-1, 1)))).toEqual(new Set([-1, 0, 1]))
    const first = createRandom(0).next
    const halves = draw(first, 10_000).filter((value) => value < 0.5).length
    expect(Math.abs(halves - 5000)).toBeLessThan(300)
    expect(draw(() => Number(random.chance(0.1)), 10_000).reduce((sum, hit) => sum + hit)).toBeGreaterThan(800)
    expect(draw(() => Number(random.chance(0)))).not.toContain(1)
    expect(draw(() => Number(random.chance(1)))).not.toContain(0)
  })

  test('picks each item, and refuses an empty list', () => {
    const random = createRandom(4)
    expect(new Set(Array.from({ length: 100 }, () => random.pick(['a', undefined, 'c'])))).toEqual(new Set(['a', undefined, 'c']))
    expect(() => random.pick([])).toThrow('cannot pick from an empty list')
  })

  test('makes bytes of every value', () => {
    const bytes = createRandom(5).bytes(10_000)
    expect(bytes).toHaveLength(10_000)
    expect(new Set(bytes).size).toBe(256)
  })
})

describe('testSeed', () => {
  test('is the number in SLUICE_TEST_SEED', () => {
    expect(testSeed()).toBe(7)
    vi.stubEnv('SLUICE_TEST_SEED', String(2 ** 31 - 1))
    expect(testSeed()).toBe(2 ** 31 - 1)
  })

  test.each(['-1', '1.5', 'x', '0x10', String(2 ** 31)])('refuses %s', (given) => {
    vi.stubEnv('SLUICE_TEST_SEED', given)
    expect(testSeed).toThrow(`SLUICE_TEST_SEED must be a whole number from 0 to 2147483647; got '${given}'`)
  })

  test.each([undefined, ''])('stays the same in a process without one: %s', (given) => {
    vi.stubEnv('SLUICE_TEST_SEED', given)
    const seed = testSeed()
    expect(Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31).toBe(true)
    expect(testSeed()).toBe(seed)
  })
})

test('a name has numbers of its own, which depend on the seed', () => {
  const drawn = [draw(seededRandom()), draw(seededRandom('ab')), draw(seededRandom('ba')), draw(testRandom('b').next)]
  expect(new Set(drawn.flat()).size).toBeGreaterThan(3990)
  expect(draw(seededRandom('ab'))).toEqual(drawn[1])
  vi.stubEnv('SLUICE_TEST_SEED', '8')
  expect(draw(seededRandom('ab'))).not.toEqual(drawn[1])
})
