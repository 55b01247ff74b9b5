/** Checks the running daemon, and reports the warnings that only it knows. */
import * as v from 'valibot'
import { FORWARDING_IGNORED } from '../health.ts'
import { healthSchema } from '../health-answer.ts'
import { type Check, fail, ok, warn } from './check.ts'
import type { TryText } from './check-provider.ts'

/** The daemon of the data directory, as the command line found it. */
export interface DaemonState {
  /** Its checks of its store and its features, as in `GET /api/doctor`; absent if it did not answer. */
  readonly checks?: readonly Check[]
  readonly running: boolean
  /** Why it does not run or answer. */
  readonly reason?: string
  /** Its answer to `GET /health`. */
  readonly health?: unknown
  /** What its models have refused, as in `GET /api/status`. */
  readonly model_limits?: readonly string[]
  /** Lets it send a short message to a model, so that it counts and records the cost. */
  readonly tryText?: TryText
}

export function checkDaemon(daemon: DaemonState): Check[] {
  const { health, model_limits = [], checks = [] } = daemon
  return [
    ...checks,
    ...checkWarnings(health),
    ...model_limits.map((limit) => warn('model', `${limit}; its requests leave that out`, 'set it so in [provider], or use another model')),
    daemonCheck(daemon),
  ]
}

function daemonCheck({ running, reason = 'it does not run', health }: DaemonState): Check {
  if (running) return ok('daemon', 'it runs and answers')
  if (health !== undefined) return fail('daemon', `it runs, but cannot work: ${reason}`, 'it goes on by itself once that is repaired')
  return warn('daemon', reason, "start it with 'sluice daemon'")
}

export function checkWarnings(health: unknown): Check[] {
  const { warnings = [] } = v.is(healthSchema, health) ? health : {}
  return warnings.map((warning) =>
    warning.startsWith(FORWARDING_IGNORED)
      ? warn(
          'proxy',
          `${warning}; behind a proxy, all clients share one rate limit`,
          'set trust_forwarded_headers = true and trusted_proxies to the address of the proxy',
        )
      : warn(
          'daemon',
          `the running daemon reports: ${warning}`,
          'the lines above show the state of this machine; restart the daemon if they find no problem',
        ),
  )
}
