/** Rules for idempotency keys (docs/contract.md#idempotency). */
import { expect } from 'vitest'
import { failedTurn, ODD_TEXTS, queuedTurn, turnEnd } from './samples.ts'
import type { StoreRules } from './store-bench.ts'

const LIMITS = { ttlMs: 300_000, keysMax: 100 }

const key = (name: string, scope = 'caller /webhook') => ({ scope, key: name })

export const idempotencyRules: StoreRules = {
  'one claim gets the key, all others see it in flight': async ({ store: { idempotency } }) => {
    const claims = await Promise.all(Array.from({ length: 20 }, async () => idempotency.claim(key('a'), LIMITS)))
    expect(claims.filter((claim) => claim === 'claimed')).toHaveLength(1)
    expect(claims.filter((claim) => claim === 'in_flight')).toHaveLength(19)
  },

  'the same key in different scopes does not collide': async ({ store: { idempotency } }) => {
    expect(await idempotency.claim({ scope: 'ab', key: 'c' }, LIMITS)).toBe('claimed')
    expect(await idempotency.claim({ scope: 'a', key: 'bc' }, LIMITS)).toBe('claimed')
    expect(await idempotency.claim({ scope: '', key: 'abc' }, LIMITS)).toBe('claimed')
    for (const text of ODD_TEXTS) expect(await idempotency.claim(key(text), LIMITS)).toBe('claimed')
    for (const text of ODD_TEXTS) expect(await idempotency.claim(key(text), LIMITS)).toBe('in_flight')
  },

  'a key is done from the end of its turn until the window ends': async ({ store: { idempotency, turns }, clock }) => {
    await idempotency.claim(key('a'), LIMITS)
    await turns.finish(turnEnd('t1', { endedAtMs: clock.nowMs(), idempotency: key('a') }))
    await clock.advance(LIMITS.ttlMs - 1)
    expect(await idempotency.claim(key('a'), LIMITS)).toBe('done')
    await clock.advance(1)
    expect(await idempotency.claim(key('a'), LIMITS)).toBe('claimed')
  },

  'a claimed key names its turn, also after a restart': async ({ store, restart, clock }) => {
    const first = store
    await first.idempotency.claim(key('queued'), LIMITS)
    expect(await first.idempotency.turnOf(key('queued'))).toBeUndefined()
    const kept = first.turns.enqueue(queuedTurn('t1', { idempotency: key('queued') }))
    expect(await first.idempotency.turnOf(key('queued'))).toBe('t1')
    await kept
    await first.idempotency.claim(key('done'), LIMITS)
    await first.turns.finish(turnEnd('t2', { endedAtMs: clock.nowMs(), idempotency: key('done') }))
    const second = await restart()
    for (const { idempotency } of [first, second]) {
      if (idempotency === second.idempotency) await idempotency.claim(key('queued'), LIMITS)
      expect(await idempotency.turnOf(key('queued'))).toBe('t1')
      expect(await idempotency.turnOf(key('done'))).toBe('t2')
      expect(await idempotency.turnOf(key('unknown'))).toBeUndefined()
    }
  },

  'a key that two processes claim at once is held by the turn that is stored first': async ({ store, otherProcess, clock }) => {
    const other = await otherProcess()
    const request = { idempotency: key('a'), createdAtMs: clock.nowMs() }
    expect([await store.idempotency.claim(key('a'), LIMITS), await other.idempotency.claim(key('a'), LIMITS)]).toEqual([
      'claimed',
      'claimed',
    ])
    await store.turns.enqueue(queuedTurn('t1', request))
    await expect(other.turns.enqueue(queuedTurn('t2', request))).rejects.toMatchObject({ code: 'conflict' })
    await clock.advance(1)
    await store.turns.finish(turnEnd('t1', { endedAtMs: clock.nowMs(), idempotency: key('a') }))
    await expect(other.turns.enqueue(queuedTurn('t2', request))).rejects.toMatchObject({ code: 'conflict' })
    await other.idempotency.release(key('a'))
    expect([await other.idempotency.claim(key('a'), LIMITS), await other.idempotency.turnOf(key('a'))]).toEqual(['done', 't1'])
    await clock.advance(LIMITS.ttlMs)
    expect(await other.idempotency.claim(key('a'), LIMITS)).toBe('claimed')
    await other.turns.enqueue(queuedTurn('t3', { idempotency: key('a'), createdAtMs: clock.nowMs() }))
  },

  'a failed turn releases its key': async ({ store: { idempotency, turns } }) => {
    for (const status of ['failed', 'aborted'] as const) {
      await idempotency.claim(key(status), LIMITS)
      await turns.finish(failedTurn(status, { status, idempotency: key(status) }))
      expect(await idempotency.claim(key(status), LIMITS)).toBe('claimed')
    }
  },

  'a turn end that fails to commit releases its key': async ({ store: { idempotency, turns } }) => {
    await idempotency.claim(key('a'), LIMITS)
    const unkeepable = { ...turnEnd('t1'), messages: [1n], idempotency: key('a') } as unknown as ReturnType<typeof turnEnd>
    await expect(turns.finish(unkeepable)).rejects.toThrow()
    expect(await idempotency.claim(key('a'), LIMITS)).toBe('claimed')
  },

  'a released claim is free again, but a done key stays done': async ({ store: { idempotency, turns }, clock }) => {
    await idempotency.claim(key('a'), LIMITS)
    await idempotency.release(key('a'))
    expect(await idempotency.claim(key('a'), LIMITS)).toBe('claimed')
    await turns.finish(turnEnd('t1', { endedAtMs: clock.nowMs(), idempotency: key('a') }))
    await idempotency.release(key('a'))
    expect(await idempotency.claim(key('a'), LIMITS)).toBe('done')
    await idempotency.release(key('unknown'))
  },

  'a claim without a stored turn ends with the process': async ({ store: { idempotency }, restart }) => {
    await idempotency.claim(key('a'), LIMITS)
    const again = await restart()
    expect(await again.idempotency.claim(key('a'), LIMITS)).toBe('claimed')
  },

  'a queued turn holds its key until it ends, also after a restart': async ({ store, restart, clock }) => {
    await store.idempotency.claim(key('a'), LIMITS)
    await store.turns.enqueue(queuedTurn('t1', { idempotency: key('a') }))
    await store.idempotency.release(key('a'))
    expect(await store.idempotency.claim(key('a'), LIMITS)).toBe('in_flight')
    const again = await restart()
    await clock.advance(2 * LIMITS.ttlMs)
    expect(await again.idempotency.claim(key('a'), LIMITS)).toBe('in_flight')
    await again.turns.finish(turnEnd('t1', { endedAtMs: clock.nowMs() }))
    expect(await again.idempotency.claim(key('a'), LIMITS)).toBe('done')
  },

  'a done key survives a restart for the rest of the window': async ({ store, restart, clock }) => {
    await store.idempotency.claim(key('a'), LIMITS)
    await store.turns.finish(turnEnd('t1', { endedAtMs: clock.nowMs(), idempotency: key('a') }))
    await store.turns.finish(failedTurn('t2', { endedAtMs: clock.nowMs(), idempotency: key('b') }))
    const again = await restart()
    expect(await again.idempotency.claim(key('a'), LIMITS)).toBe('done')
    expect(await again.idempotency.claim(key('b'), LIMITS)).toBe('claimed')
    await clock.advance(LIMITS.ttlMs)
    expect(await again.idempotency.claim(key('a'), LIMITS)).toBe('claimed')
  },

  'a key that a stored or done turn of another process holds is known': async ({ store, otherProcess, clock }) => {
    const other = await otherProcess()
    for (const { idempotency } of [store, other]) await idempotency.claim(key('before'), LIMITS)
    await other.turns.enqueue(queuedTurn('t1', { idempotency: key('a') }))
    await other.turns.enqueue(queuedTurn('t2', { idempotency: key('b') }))
    expect(await store.idempotency.claim(key('a'), LIMITS)).toBe('in_flight')
    expect(await store.idempotency.turnOf(key('a'))).toBe('t1')
    await other.turns.finish(turnEnd('t1', { endedAtMs: clock.nowMs() }))
    await other.turns.finish(failedTurn('t2', { endedAtMs: clock.nowMs() }))
    await other.turns.finish(turnEnd('t3', { endedAtMs: clock.nowMs(), idempotency: key('c') }))
    const claims = ['a', 'b', 'c', 'before'].map((name) => store.idempotency.claim(key(name), LIMITS))
    expect(await Promise.all(claims)).toEqual(['done', 'claimed', 'done', 'in_flight'])
  },

  'keeps at most keysMax keys and drops the oldest': async ({ store: { idempotency, turns }, clock }) => {
    const limits = { ...LIMITS, keysMax: 3 }
    const use = async (name: string) => {
      await idempotency.claim(key(name), limits)
      await turns.finish(turnEnd(name, { endedAtMs: clock.nowMs(), idempotency: key(name) }))
    }
    for (const name of ['a', 'b', 'c', 'd']) await use(name)
    for (const name of ['b', 'c', 'd']) expect(await idempotency.claim(key(name), limits)).toBe('done')
    expect(await idempotency.claim(key('a'), limits)).toBe('claimed')
    expect(await idempotency.claim(key('b'), limits)).toBe('claimed')
  },

  'done keys are dropped before keys in flight, oldest first': async ({ store: { idempotency, turns }, clock }) => {
    const limits = { ...LIMITS, keysMax: 2 }
    await idempotency.claim(key('running'), limits)
    for (const name of ['a', 'b']) {
      await idempotency.claim(key(name), limits)
      await turns.finish(turnEnd(name, { endedAtMs: clock.nowMs(), idempotency: key(name) }))
    }
    expect(await idempotency.claim(key('running'), limits)).toBe('in_flight')
    await idempotency.claim(key('running too'), limits)
    await idempotency.claim(key('one more'), limits)
    expect(await idempotency.claim(key('one more'), limits)).toBe('in_flight')
    expect(await idempotency.claim(key('running too'), limits)).toBe('in_flight')
    expect(await idempotency.claim(key('running'), limits)).toBe('claimed')
  },
}
