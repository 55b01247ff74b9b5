/** `/api/limits`: the clients that a limit of `[limits]`, or the breaker of loops, holds back. */
import { isoTime } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import { AppError, defineRoute, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import { recordAction } from '../record-action.ts'
import { wholeText } from './query.ts'

/** One more than the command line lists at most. */
const PAGE_MAX = 100_001

const heldSchema = v.object({
  client: v.pipe(
    v.string(),
    v.description(
      '`device:<id>`, `channel:<channel>/<account>/<sender>`, the pool `strangers` or `strangers:<channel>`; for `loop` the id of a session',
    ),
  ),
  cause: v.picklist(['turns_per_hour', 'usd_per_day', 'turns_waiting', 'waiting_mb', 'loop']),
  since: v.string(),
  until: v.string(),
})

const pageSchema = v.object({ limits: v.array(heldSchema) })
/** The answer of `GET /api/limits`. */
export type LimitsPage = v.InferOutput<typeof pageSchema>

export function limitRoutes(runtime: Runtime): Route[] {
  const {
    store: { admissions },
    clock,
  } = runtime
  return [
    defineRoute({
      method: 'GET',
      path: '/api/limits',
      summary: 'The clients that a limit holds back now, the latest end first',
      auth: 'operator',
      query: v.object({ limit: wholeText(1, PAGE_MAX, 100) }),
      answers: { 200: { description: 'The clients', schema: pageSchema } },
      async handle({ query: { limit } }) {
        const held = await admissions.list(clock.nowMs(), limit)
        return {
          limits: held.map(({ client, cause, sinceMs, untilMs }) => ({ client, cause, since: isoTime(sinceMs), until: isoTime(untilMs) })),
        }
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/limits/reset',
      summary: 'Forget the counted turns and the spending of a client, and end a pause of a conversation',
      auth: 'operator',
      body: v.object({ client: v.pipe(v.string(), v.minLength(1), v.description('As in `GET /api/limits`')) }),
      answers: { 200: { description: 'The client starts anew', schema: v.object({ reset: v.literal(true), client: v.string() }) } },
      async handle({ by, body: { client } }) {
        if (!(await admissions.reset(client))) throw new AppError('not_found', 'No limit has counted anything for this client')
        await recordAction(runtime, 'limits_reset', by, { client })
        return { reset: true, client }
      },
    }),
  ]
}
