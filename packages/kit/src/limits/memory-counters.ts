/** Counters in memory, for a store that one process uses. */
import type { Clock, Counters, Lockout, LockoutOptions, RateLimit } from '@sluice/sdk'
import { BoundedMap } from './bounded-map.ts'
import { RateLimiter } from './rate-limiter.ts'

/** The number of limits and of lockouts that are kept; no build has as many. */
const NAMES_MAX = 1000

type MonotonicClock = Pick<Clock, 'monotonicMs'>

export function memoryCounters(clock: MonotonicClock): Counters {
  const rateLimits = keptByName<RateLimit>()
  const lockouts = keptByName<Lockout>()
  return {
    rateLimit: (name, options) => rateLimits(name, options, () => new RateLimiter({ clock, ...options })),
    lockout: (name, options) => lockouts(name, options, () => createLockout(clock, options)),
  }
}

/** Keeps what was made under a name for as long as it is asked for with the same numbers. */
function keptByName<Counter>(): (name: string, options: object, make: () => Counter) => Counter {
  const kept = new BoundedMap<string, { readonly numbers: string; readonly counter: Counter }>(NAMES_MAX)
  return (name, options, make) => {
    const numbers = JSON.stringify(Object.entries(options).sort())
    const known = kept.get(name)
    if (known?.numbers === numbers) return known.counter
    const counter = make()
    kept.set(name, { numbers, counter })
    return counter
  }
}

interface Failures {
  /** The times of the last failures, oldest first; fewer than `failuresMax`. */
  readonly timesMs: number[]
  lockedUntilMs: number
}

function createLockout(clock: MonotonicClock, { failuresMax, windowMs, lockMs, keysMax }: LockoutOptions): Lockout {
  const failures = new BoundedMap<string, Failures>(keysMax)
  return {
    leftSecs: (key) => Math.max(0, Math.ceil(((failures.get(key)?.lockedUntilMs ?? 0) - clock.monotonicMs()) / 1000)),
    fail(key) {
      const nowMs = clock.monotonicMs()
      const known = failures.get(key) ?? { timesMs: [], lockedUntilMs: 0 }
      while (known.timesMs.length > 0 && (known.timesMs[0] ?? 0) <= nowMs - windowMs) known.timesMs.shift()
      known.timesMs.push(nowMs)
      const isTooMany = known.timesMs.length >= failuresMax
      if (isTooMany) {
        known.timesMs.length = 0
        known.lockedUntilMs = nowMs + lockMs
      }
      failures.set(key, known)
      return isTooMany
    },
    clear: (key) => void failures.delete(key),
  }
}
