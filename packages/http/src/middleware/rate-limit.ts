/** Rate limits of routes. The counters of a daemon outlive a reload, unless the reload changes what they limit. */

import type { GatewayConfig } from '@sluice/config'
import { BoundedMap, RateLimiter, TimeRing } from '@sluice/kit'
import type { Snapshot } from '@sluice/runtime'
import { AppError, type Clock } from '@sluice/sdk'
import type { Step } from '../context.ts'
import { createLockout, type Lockout } from '../lockout.ts'

/** Counts the call against the client's address; needs `peer`. Refuses with `rate_limited` and reports it to the observers as `route`. */
export const rateLimit =
  (limiter: RateLimiter, route: string, { observe }: Snapshot): Step =>
  (c, next) => {
    const { address, operator } = c.get('peer')
    const retryAfterSecs = operator === undefined ? limiter.take(address) : 0
    if (retryAfterSecs === 0) return next()
    observe({ kind: 'rate_limited', route })
    throw new AppError('rate_limited', 'Too many requests', { retryAfterSecs })
  }

/** The limiters of one daemon. Each is asked for with the configuration in force. */
export interface Limits {
  /** Limits `POST /webhook`. */
  webhook(config: GatewayConfig): RateLimiter
  /** Limits `POST /pair`. */
  pair(config: GatewayConfig): RateLimiter
  /** Limits the route of this name, such as `GET /x`, to its own number of calls per minute. */
  route(name: string, callsPerMinute: number, config: GatewayConfig): RateLimiter
  /** Locks out addresses that send wrong pairing codes. */
  readonly pairing: Lockout
  /** Counts a wrong pairing code from any address. True if there were too many within five minutes; counting then restarts. */
  countWrongCode(): boolean
}

/** A bound that no build reaches. */
const ROUTES_MAX = 1000
const WRONG_CODES_MAX = 5
const WRONG_CODES_WINDOW_MS = 900_000
const WRONG_CODES_LOCK_MS = 300_000
/** For all addresses together: a search spread over many addresses makes the daemon drop its pending codes. */
const WRONG_CODES_BUDGET = 30
const WRONG_CODES_BUDGET_MS = 300_000

export function createLimits(clock: Clock): Limits {
  const wrongCodes = new TimeRing(WRONG_CODES_BUDGET)
  const routes = new BoundedMap<string, (config: GatewayConfig) => RateLimiter>(ROUTES_MAX)
  return {
    countWrongCode() {
      const nowMs = clock.monotonicMs()
      wrongCodes.dropUntil(nowMs - WRONG_CODES_BUDGET_MS)
      wrongCodes.push(nowMs)
      if (!wrongCodes.isFull) return false
      wrongCodes.dropUntil(nowMs)
      return true
    },
    webhook: limiterFor(clock, ({ webhook_rate_limit_per_minute }) => webhook_rate_limit_per_minute),
    pair: limiterFor(clock, ({ pair_rate_limit_per_minute }) => pair_rate_limit_per_minute),
    route(name, callsPerMinute, config) {
      const key = `${name} ${callsPerMinute}`
      const limiter = routes.get(key) ?? limiterFor(clock, () => callsPerMinute)
      routes.set(key, limiter)
      return limiter(config)
    },
    pairing: createLockout({ clock, failuresMax: WRONG_CODES_MAX, windowMs: WRONG_CODES_WINDOW_MS, lockMs: WRONG_CODES_LOCK_MS }),
  }
}

/** Keeps its limiter, and with it the counts, for as long as the configured numbers stay the same. */
function limiterFor(clock: Clock, limitOf: (config: GatewayConfig) => number): (config: GatewayConfig) => RateLimiter {
  let current: { readonly limit: number; readonly keysMax: number; readonly limiter: RateLimiter } | undefined
  return (config) => {
    const limit = limitOf(config)
    const keysMax = config.rate_limit_max_keys
    if (current?.limit !== limit || current.keysMax !== keysMax) {
      current = { limit, keysMax, limiter: new RateLimiter({ clock, limit, keysMax }) }
    }
    return current.limiter
  }
}
