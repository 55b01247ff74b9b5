/** The rows of `sluice doctor` for what only the running daemon has seen. */
import * as v from 'valibot'
import { FORWARDING_IGNORED, healthSchema } from '../health.ts'
import { type Check, warn } from './check.ts'

export function checkWarnings(health: unknown): Check[] {
  const { warnings = [] } = v.is(healthSchema, health) ? health : {}
  return warnings.map((warning) =>
    warning.startsWith(FORWARDING_IGNORED)
      ? warn(
          'proxy',
          `${warning}; behind a proxy, all clients share one rate limit`,
          'set trust_forwarded_headers = true and trusted_proxies to the address of the proxy',
        )
      : warn('daemon', `the running daemon says: ${warning}`, 'the rows above say what works here; restart the daemon if it does'),
  )
}
