/** Rules for rate limits and lockouts. */
import { expect } from 'vitest'
import type { StoreRules } from './store-bench.ts'

const LIMIT = { limit: 2, keysMax: 10 }
const LOCKOUT = { failuresMax: 3, windowMs: 60_000, lockMs: 300_000, keysMax: 10 }

export const counterRules: StoreRules = {
  'a rate limit counts the calls of each key within any 60 seconds': async ({ store, clock }) => {
    const limit = store.counters.rateLimit('webhook', LIMIT)
    expect([await limit.take('a'), await limit.take('b')]).toEqual([0, 0])
    await clock.advance(30_000)
    expect([await limit.take('a'), await limit.take('a'), await limit.take('b')]).toEqual([0, 30, 0])
    await clock.advance(30_000)
    expect([await limit.take('a'), await limit.take('a')]).toEqual([0, 30])
  },

  'a rate limit of 0 refuses nothing': async ({ store }) => {
    const limit = store.counters.rateLimit('webhook', { limit: 0, keysMax: 1 })
    for (let call = 0; call < 5; call++) expect(await limit.take('a')).toBe(0)
  },

  'keeps counts by name until the numbers change': async ({ store }) => {
    const take = async (name: string, limit: number) => store.counters.rateLimit(name, { limit, keysMax: 10 }).take('a')
    expect([await take('one', 1), await take('one', 1), await take('two', 1), await take('one', 2)]).toEqual([0, 60, 0, 0])
  },

  'locks a key out after too many failures within the window': async ({ store, clock }) => {
    const { counters } = store
    const lockout = counters.lockout('codes', LOCKOUT)
    expect([await lockout.fail('a'), await lockout.fail('a'), await lockout.leftSecs('a')]).toEqual([false, false, 0])
    expect([await lockout.fail('a'), await lockout.leftSecs('a'), await lockout.leftSecs('b')]).toEqual([true, 300, 0])
    expect(await counters.lockout('codes', LOCKOUT).leftSecs('a')).toBe(300)
    await clock.advance(299_500)
    expect(await lockout.leftSecs('a')).toBe(1)
    await clock.advance(500)
    expect([await lockout.leftSecs('a'), await lockout.fail('a')]).toEqual([0, false])
  },

  'forgets failures from before the window and cleared ones': async ({ store, clock }) => {
    const lockout = store.counters.lockout('codes', LOCKOUT)
    await lockout.fail('a')
    await lockout.fail('a')
    await clock.advance(60_000)
    expect([await lockout.fail('a'), await lockout.fail('a')]).toEqual([false, false])
    await lockout.clear('a')
    expect([await lockout.fail('a'), await lockout.fail('a'), await lockout.fail('a')]).toEqual([false, false, true])
  },

  'a lockout without a duration only reports too many failures': async ({ store }) => {
    const budget = store.counters.lockout('budget', { ...LOCKOUT, lockMs: 0 })
    const fail = async () => [await budget.fail('all'), await budget.leftSecs('all')]
    for (const expected of [false, false, true, false, false, true]) expect(await fail()).toEqual([expected, 0])
  },
}
