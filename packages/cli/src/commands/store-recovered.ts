/** `sluice store recovered`: ends the unfinished work of data that was recovered to the state of an earlier time. */
import { systemClock } from '@sluice/kit'
import { createLogger } from '@sluice/runtime/log'
import { openStoreTools } from '@sluice/runtime/open-backend'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'

/** A time without a zone would be another one on another machine. */
const TIME = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})$/

export async function run(context: CliContext): Promise<number> {
  const { out, json, options } = context
  const { until } = options
  const atMs = typeof until === 'string' && TIME.test(until) ? Date.parse(until) : Number.NaN
  if (Number.isNaN(atMs))
    throw new AppError('invalid_request', 'Give the time of the recovery with its zone, such as --until 2026-01-31T18:00:00Z.')
  const log = createLogger({ secrets: () => [], level: 'warn', format: 'text', stream: process.stderr, clock: systemClock })
  const tools = await openStoreTools({ ...context, log })
  if (!tools.backend.recovered) throw new AppError('not_compiled', 'This build cannot mark recovered data.')
  const marked = await tools.backend.recovered({ ...tools.options, atMs })
  if (json) out.json({ until: new Date(atMs).toISOString(), marked })
  else {
    const { replies, messages, turns, approvals, runs } = marked
    out.hint(`messages that may have been answered since: ${messages}; see 'sluice inbox dead'`)
    out.hint(`replies that may have been sent since: ${replies}; see 'sluice outbox list --state ambiguous'`)
    out.print(`ended: ${turns} turns, ${approvals} approvals, ${runs} procedure runs`)
  }
  return 0
}
