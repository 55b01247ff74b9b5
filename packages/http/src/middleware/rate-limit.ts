/** Rate limits of routes. The store counts, so that the counts outlive a reload, unless the reload changes what they limit. */

import type { GatewayConfig } from '@sluice/config'
import type { Snapshot } from '@sluice/runtime'
import { AppError, type Counters, type Lockout, type RateLimit } from '@sluice/sdk'
import { ADDRESSES_MAX } from '../auth/lockout.ts'
import type { Step } from '../request/context.ts'

/**
 * Counts the call against the paired device that made it, if it is known by then, else against the client's address; needs `peer`. Refuses
 * with `rate_limited` and reports it to the observers as `route`.
 */
export const rateLimit =
  (limit: RateLimit, route: string, { observe }: Snapshot): Step =>
  async (c, next) => {
    const { address, operator } = c.get('peer')
    const device = c.get('caller')?.device
    const retryAfterSecs = operator === undefined ? await limit.take(device ? `device:${device}` : address) : 0
    if (retryAfterSecs === 0) return next()
    observe({ kind: 'rate_limited', route })
    throw new AppError('rate_limited', 'Too many requests', { retryAfterSecs })
  }

/** The limits of one store. Each is asked for with the configuration in force. */
export interface Limits {
  /** Limits `POST /webhook`. */
  webhook(config: GatewayConfig): RateLimit
  /** Limits `POST /pair`. */
  pair(config: GatewayConfig): RateLimit
  /** Limits the route of this name, such as `GET /x`, to its own number of calls per minute. */
  route(name: string, callsPerMinute: number, config: GatewayConfig): RateLimit
  /** Locks out addresses that send wrong pairing codes. */
  readonly pairing: Lockout
  /** Counts a wrong pairing code from any address. True if there were too many within five minutes; counting then restarts. */
  countWrongCode(): boolean | Promise<boolean>
}

const PAIRING_LOCKOUT = { failuresMax: 5, windowMs: 900_000, lockMs: 300_000, keysMax: ADDRESSES_MAX }
/** For all addresses together: a search spread over many addresses makes the daemon drop its pending codes. */
const WRONG_CODES_BUDGET = { failuresMax: 30, windowMs: 300_000, lockMs: 0, keysMax: 1 }

export function createLimits(counters: Counters): Limits {
  const wrongCodes = counters.lockout('pairing codes', WRONG_CODES_BUDGET)
  const perAddress = (name: string, limit: number, { rate_limit_max_keys: keysMax }: GatewayConfig): RateLimit =>
    counters.rateLimit(name, { limit, keysMax })
  return {
    countWrongCode: () => wrongCodes.fail('all addresses'),
    webhook: (config) => perAddress('webhook', config.webhook_rate_limit_per_minute, config),
    pair: (config) => perAddress('pair', config.pair_rate_limit_per_minute, config),
    route: (name, callsPerMinute, config) => perAddress(`route ${name}`, callsPerMinute, config),
    pairing: counters.lockout('pairing', PAIRING_LOCKOUT),
  }
}
