/** Rate limits of routes. The store counts, so that the counts outlive a reload, unless the reload changes what they limit. */

import { countedAs, type GatewayConfig } from '@sluice/config'
import type { Runtime, Snapshot } from '@sluice/runtime'
import { AppError, type Counters, type Lockout, type RateLimit } from '@sluice/sdk'
import { countedClient } from '../auth/identity.ts'
import { ADDRESSES_MAX } from '../auth/lockout.ts'
import type { HttpContext, Step } from '../request/context.ts'

/** The calls within a minute of one person whose devices are only clients, over all routes without a limit of their own. */
export const CLIENT_CALLS_PER_MINUTE = 1200

/**
 * Counts the call against the paired device that made it, or the person of a client whose accounts are linked, if that is known by then, else
 * against the client's address; needs `peer`. Refuses with `rate_limited` and reports it to the observers as `route`.
 */
export const rateLimit =
  (limit: RateLimit, route: string, { observe }: Snapshot, people?: Runtime['people']): Step =>
  async (c, next) => {
    const retryAfterSecs = c.get('peer').operator === undefined ? await limit.take(countedKey(c, people)) : 0
    if (retryAfterSecs === 0) return next()
    observe({ kind: 'rate_limited', route })
    throw new AppError('rate_limited', 'Too many requests', { retryAfterSecs })
  }

function countedKey(c: HttpContext, people: Runtime['people'] | undefined): string {
  const { device, person, role } = c.get('caller') ?? {}
  if (!device) return c.get('peer').address
  return people && role === 'client' ? countedAs(countedClient(people, person ?? '', role)) : `device:${device}`
}

/** Limits the calls of clients to the routes that have no limit of their own; needs `caller`. */
export function limitClient(
  route: string,
  { people, snapshot, limits }: { readonly people: Runtime['people']; readonly snapshot: Snapshot; readonly limits: Limits },
): Step {
  const limited = rateLimit(limits.route('calls of clients', CLIENT_CALLS_PER_MINUTE, snapshot.gateway), route, snapshot, people)
  return (c, next) => (c.get('caller').role === 'client' ? limited(c, next) : next())
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
