import { getEventListeners } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { queryObjects } from 'node:v8'
import { testClock } from '@sluice/testkit/clock'
import { describe, expect, test } from 'vitest'
import { signalScope } from './signal-scope.ts'

const listenersOf = (controller: AbortController) => getEventListeners(controller.signal, 'abort').length

describe('a signal scope', () => {
  test('aborts with the first of its signals, for the reason of that signal', () => {
    const [first, second] = [new AbortController(), new AbortController()]
    using scope = signalScope([first.signal, undefined, second.signal], 60_000)
    expect(scope.signal.aborted).toBe(false)
    second.abort('the second')
    expect([scope.signal.aborted, scope.signal.reason, scope.timedOut]).toEqual([true, 'the second', false])
    expect([first, second].map(listenersOf)).toEqual([0, 0])
  })

  test('is aborted from the start where one of its signals is', () => {
    const long = new AbortController()
    using scope = signalScope([long.signal, AbortSignal.abort('before')], 60_000)
    expect([scope.signal.aborted, scope.signal.reason, listenersOf(long)]).toEqual([true, 'before', 0])
  })

  test('aborts with a TimeoutError after its time limit', async () => {
    const [clock, long] = [testClock(), new AbortController()]
    using scope = signalScope([long.signal], 1000, clock)
    await clock.advance(999)
    expect(scope.signal.aborted).toBe(false)
    await clock.advance(1)
    expect([scope.signal.aborted, scope.signal.reason.name, scope.timedOut, listenersOf(long)]).toEqual([true, 'TimeoutError', true, 0])
  })

  test('waits a second more when its timer was held up, so that an answer in the socket is read first', async () => {
    let monotonicMs = 0
    const [sleeps, wake] = [[] as number[], [] as (() => void)[]]
    const clock = {
      nowMs: () => monotonicMs,
      monotonicMs: () => monotonicMs,
      sleep: (ms: number) => {
        sleeps.push(ms)
        return new Promise<void>((resolve) => wake.push(resolve))
      },
    }
    using scope = signalScope([], 30_000, clock)
    const fireAt = async (atMs: number) => {
      monotonicMs = atMs
      wake.shift()?.()
      await setImmediate()
    }
    await fireAt(65_000)
    expect([sleeps, scope.signal.aborted]).toEqual([[30_000, 1000], false])
    await fireAt(99_000)
    expect([sleeps, scope.signal.aborted]).toEqual([[30_000, 1000, 1000], false])
    await fireAt(100_000)
    expect([scope.signal.aborted, scope.timedOut]).toEqual([true, true])
  })

  test('ends work that is not awaited, without calling it a timeout', async () => {
    const clock = testClock()
    const leave = () => {
      using scope = signalScope([], 1000, clock)
      return scope
    }
    const { signal, timedOut } = leave()
    expect([signal.aborted, timedOut]).toEqual([true, false])
    await clock.advance(0)
    expect(clock.sleeping).toBe(0)
  })

  test('leaves no signal, timer or listener behind at any depth of nesting', async () => {
    const [clock, long] = [testClock(), new AbortController()]
    const work = async () => {
      using outer = signalScope([long.signal], 60_000, clock)
      using inner = signalScope([outer.signal], 30_000, clock)
      await Promise.resolve(inner.signal)
    }
    await work()
    await setImmediate()
    const before = queryObjects(AbortSignal, { format: 'count' })
    for (let round = 0; round < 500; round++) await work()
    await setImmediate()
    expect(queryObjects(AbortSignal, { format: 'count' }) - before).toBeLessThan(5)
    expect([listenersOf(long), clock.sleeping]).toEqual([0, 0])
  })
})
