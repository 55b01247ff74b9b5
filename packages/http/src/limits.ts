/** The limiters of one daemon: they outlive a reload, unless it changed what they limit. */

import type { GatewayConfig } from '@sluice/config'
import { BoundedMap } from '@sluice/kit'
import type { Clock, Route } from '@sluice/sdk'
import { createLockout, type Lockout } from './lockout.ts'
import { createRateLimiter, type RateLimiter } from './rate-limiter.ts'
import { TimeRing } from './time-ring.ts'

export interface Limits {
  /** Of `POST /webhook`, with the configuration in force. */
  webhook(config: GatewayConfig): RateLimiter
  /** Of `POST /pair`, with the configuration in force. */
  pair(config: GatewayConfig): RateLimiter
  /** Of a route that limits its calls, with the configuration in force. */
  route(route: LimitedRoute, config: GatewayConfig): RateLimiter
  /** Of wrong pairing codes, by address. */
  readonly pairing: Lockout
  /** Counts a wrong pairing code, whoever sent it. True when there have been too many in five minutes; then it starts anew. */
  countWrongCode(): boolean
}

export interface LimitedRoute extends Pick<Route, 'method' | 'path'> {
  readonly callsPerMinute: number
}

/** Routes with a limit that are remembered; there are never that many. */
const ROUTES_MAX = 1000
const WRONG_CODES_MAX = 5
const WRONG_CODES_WINDOW_MS = 900_000
const WRONG_CODES_LOCK_MS = 300_000
/** Of all addresses together: guesses from many places find the codes gone. */
const WRONG_CODES_BUDGET = 30
const WRONG_CODES_BUDGET_MS = 300_000

export function createLimits(clock: Clock): Limits {
  const wrongCodes = new TimeRing(WRONG_CODES_BUDGET)
  const ofRoutes = new BoundedMap<string, (config: GatewayConfig) => RateLimiter>(ROUTES_MAX)
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
    route({ method, path, callsPerMinute }, config) {
      const name = `${method} ${path} ${callsPerMinute}`
      const known = ofRoutes.get(name) ?? limiterFor(clock, () => callsPerMinute)
      ofRoutes.set(name, known)
      return known(config)
    },
    pairing: createLockout({ clock, failuresMax: WRONG_CODES_MAX, windowMs: WRONG_CODES_WINDOW_MS, lockMs: WRONG_CODES_LOCK_MS }),
  }
}

function limiterFor(clock: Clock, limitOf: (config: GatewayConfig) => number): (config: GatewayConfig) => RateLimiter {
  let made: { readonly limit: number; readonly keysMax: number; readonly limiter: RateLimiter } | undefined
  return (config) => {
    const limit = limitOf(config)
    const keysMax = config.rate_limit_max_keys
    if (made?.limit !== limit || made.keysMax !== keysMax) made = { limit, keysMax, limiter: createRateLimiter({ clock, limit, keysMax }) }
    return made.limiter
  }
}
