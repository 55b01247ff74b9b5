/** A clock that moves only when a test advances it. */
import type { Clock } from '@sluice/sdk'

/** A clock that moves only when a test advances it. */
export interface TestClock extends Clock {
  /** Moves time forward, ending each sleep in order at its own time. Resolves after the woken code has run. */
  advance(ms: number): Promise<void>
  /** Sets the wall clock ahead, or back by a negative number. No time passes. */
  jump(ms: number): void
  /** The number of sleeps that have not ended. */
  readonly sleeping: number
}

interface Sleeper {
  readonly atMs: number
  readonly wake: () => void
}

/** Lets promise callbacks and one round of I/O run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Creates a clock at `startMs` milliseconds since 1970; `monotonicMs` starts at 0. */
export function testClock(startMs = Date.UTC(2026, 0, 1)): TestClock {
  let passedMs = 0
  let jumpedMs = 0
  const sleepers = new Set<Sleeper>()

  const nextUntil = (endMs: number): Sleeper | undefined => {
    let next: Sleeper | undefined
    for (const sleeper of sleepers) if (sleeper.atMs <= endMs && (!next || sleeper.atMs < next.atMs)) next = sleeper
    return next
  }

  return {
    nowMs: () => startMs + passedMs + jumpedMs,
    monotonicMs: () => passedMs,
    jump(ms) {
      jumpedMs += ms
    },
    get sleeping() {
      return sleepers.size
    },
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve()
        const wake = () => {
          sleepers.delete(sleeper)
          signal?.removeEventListener('abort', wake)
          resolve()
        }
        const sleeper: Sleeper = { atMs: passedMs + Math.max(0, ms), wake }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', wake, { once: true })
      }),
    async advance(ms) {
      await settle()
      const endMs = passedMs + ms
      for (let next = nextUntil(endMs); next; next = nextUntil(endMs)) {
        passedMs = Math.max(passedMs, next.atMs)
        next.wake()
        await settle()
      }
      passedMs = endMs
    },
  }
}
