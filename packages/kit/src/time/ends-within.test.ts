import { getEventListeners } from 'node:events'
import { testClock } from '@sluice/testkit/clock'
import { describe, expect, test } from 'vitest'
import { endsWithin } from './ends-within.ts'

describe('waiting for work that should end soon', () => {
  test('ends with the work, and leaves no timer and no listener', async () => {
    const [clock, { signal }, work] = [testClock(), new AbortController(), Promise.withResolvers<string>()]
    const waiting = endsWithin(work.promise, 1000, clock, signal)
    await clock.advance(999)
    work.resolve('done')
    await expect(waiting).resolves.toBe(true)
    expect([clock.sleeping, getEventListeners(signal, 'abort').length]).toEqual([0, 0])
  })

  test('ends after the limit while the work continues', async () => {
    const clock = testClock()
    const waiting = endsWithin(new Promise(() => undefined), 1000, clock)
    await clock.advance(1000)
    await expect(waiting).resolves.toBe(false)
  })

  test('ends when the signal aborts, before the limit', async () => {
    const [clock, abort] = [testClock(), new AbortController()]
    const waiting = endsWithin(new Promise(() => undefined), 1000, clock, abort.signal)
    abort.abort()
    await expect(waiting).resolves.toBe(false)
    expect(clock.sleeping).toBe(0)
  })

  test('counts work that had ended before, even without any time left', async () => {
    const clock = testClock()
    await expect(endsWithin(Promise.resolve(), 0, clock)).resolves.toBe(true)
    await expect(endsWithin(Promise.resolve(), 1000, clock, AbortSignal.abort())).resolves.toBe(true)
  })

  test('throws the error of the work, and ignores one after the limit', async () => {
    const [clock, work] = [testClock(), Promise.withResolvers<void>()]
    await expect(endsWithin(Promise.reject(new Error('its own')), 1000, clock)).rejects.toThrow('its own')
    expect(clock.sleeping).toBe(0)
    const waiting = endsWithin(work.promise, 1000, clock)
    await clock.advance(1000)
    await expect(waiting).resolves.toBe(false)
    // An unhandled rejection would fail the run.
    work.reject(new Error('late'))
    await clock.advance(0)
  })
})
