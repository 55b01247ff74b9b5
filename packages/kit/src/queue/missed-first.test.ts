import { testClock } from '@sluice/testkit/clock'
import { beforeEach, describe, expect, test } from 'vitest'
import { MissedFirst } from './missed-first.ts'

const WAIT_MS = 1500

/** A gate whose readings end when the test says so. */
function arrange() {
  const clock = testClock()
  const stopping = new AbortController()
  const ends: (() => void)[] = []
  const held = { count: 0 }
  const gate = new MissedFirst({
    clock,
    context: { signal: stopping.signal, catchUp: () => new Promise<void>((resolve) => ends.push(resolve)) },
    waitMs: WAIT_MS,
    hold: () => {
      held.count += 1
      return () => {
        held.count -= 1
      }
    },
    read: async () => undefined,
  })
  return { clock, stopping, ends, held, gate }
}

/** Whether a promise has resolved after all that can happen at once. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  const done = (): void => {
    settled = true
  }
  promise.then(done, done)
  await new Promise((resolve) => setImmediate(resolve))
  return settled
}

describe('MissedFirst', () => {
  let bench: ReturnType<typeof arrange>
  beforeEach(() => {
    bench = arrange()
  })

  test('lets messages pass while nothing is read', async () => {
    await bench.gate.pass()
    expect([bench.gate.isReading, bench.held.count]).toEqual([false, 0])
  })

  test('holds messages and positions until the missed ones are read', async () => {
    const { gate, ends, held } = bench
    gate.start()
    const passed = gate.pass()
    expect(await isSettled(passed)).toBe(false)
    expect([gate.isReading, held.count]).toEqual([true, 1])
    ends[0]?.()
    await passed
    expect([gate.isReading, held.count]).toEqual([false, 0])
  })

  test('lets messages pass after the longest wait, and holds the positions on', async () => {
    const { gate, clock, held } = bench
    gate.start()
    const passed = gate.pass()
    await clock.advance(WAIT_MS - 1)
    expect(await isSettled(passed)).toBe(false)
    await clock.advance(1)
    await passed
    expect([gate.isReading, held.count]).toEqual([true, 1])
  })

  test('another reading prolongs no wait, and holds the positions until both have ended', async () => {
    const { gate, clock, ends, held } = bench
    gate.start()
    await clock.advance(WAIT_MS - 1)
    gate.start()
    const passed = gate.pass()
    await clock.advance(1)
    await passed
    ends[0]?.()
    expect(await isSettled(Promise.resolve())).toBe(true)
    expect([gate.isReading, held.count]).toEqual([true, 1])
    ends[1]?.()
    await isSettled(Promise.resolve())
    expect([gate.isReading, held.count]).toEqual([false, 0])
  })

  test('refuses messages at the stop, and holds the positions', async () => {
    const { gate, stopping, ends, held } = bench
    gate.start()
    const [passed, settled] = [gate.pass(), gate.settled()]
    stopping.abort()
    ends[0]?.()
    await expect(passed).rejects.toMatchObject({ code: 'unavailable' })
    await settled
    expect(held.count).toBe(1)
  })

  test('advances in the order of the messages, however they are stored', async () => {
    const { gate } = bench
    const [one, two] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const advanced: number[] = []
    const stored = [gate.store(one.promise, () => advanced.push(1)), gate.store(two.promise, () => advanced.push(2))]
    two.resolve()
    await stored[1]
    const all = gate.passAll()
    expect([advanced, await isSettled(all)]).toEqual([[], false])
    one.resolve()
    await all
    expect(advanced).toEqual([1, 2])
  })

  test('reads again what could not be stored, and does not advance', async () => {
    const { gate, held } = bench
    const failed = gate.store(Promise.reject(new Error('the disk is full')), () => expect.fail('advanced'))
    await expect(failed).rejects.toThrow('the disk is full')
    await isSettled(Promise.resolve())
    expect([gate.isReading, held.count]).toEqual([true, 1])
  })
})
