/** `/api/limits`: the clients that a limit of `[limits]`, or the breaker of loops, holds back, and the shares that clients hold. */
import { isoTime } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import { AppError, defineRoute, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import { recordAction } from '../request/record-action.ts'
import { wholeText } from './query.ts'

/** One more than the command line lists at most. */
const PAGE_MAX = 100_001
const SHARES_MAX = 20

const heldSchema = v.object({
  client: v.pipe(
    v.string(),
    v.description(
      '`device:<id>`, `channel:<channel>/<account>/<sender>`, the pool `strangers` or `strangers:<channel>`; for `loop` the id of a session, which ends with the writer in a shared room',
    ),
  ),
  cause: v.picklist(['turns_per_hour', 'usd_per_day', 'turns_waiting', 'waiting_mb', 'commands', 'loop']),
  since: v.string(),
  until: v.string(),
})

const shareSchema = v.object({
  client: v.pipe(v.string(), v.description('As in `limits`')),
  share: v.picklist(['turns_running', 'turns_waiting', 'waiting_mb', 'streams', 'downloads', 'attachments_mb']),
  held: v.pipe(v.number(), v.description('What the client holds on this node now, as `[limits]` counts it')),
})

const pageSchema = v.object({
  limits: v.array(heldSchema),
  shares: v.pipe(v.array(shareSchema), v.description(`For each share the ${SHARES_MAX} clients that hold the most of it`)),
})
/** The answer of `GET /api/limits`. */
export type LimitsPage = v.InferOutput<typeof pageSchema>

export function limitRoutes(runtime: Runtime): Route[] {
  const {
    store: { admissions },
    clock,
    shares,
  } = runtime
  return [
    defineRoute({
      method: 'GET',
      path: '/api/limits',
      summary: 'The clients that a limit holds back now, the latest end first, and the shares that clients hold',
      auth: 'operator',
      query: v.object({ limit: wholeText(1, PAGE_MAX, 100) }),
      answers: { 200: { description: 'The clients', schema: pageSchema } },
      async handle({ query: { limit } }) {
        const held = await admissions.list(clock.nowMs(), limit)
        return {
          limits: held.map(({ client, cause, sinceMs, untilMs }) => ({ client, cause, since: isoTime(sinceMs), until: isoTime(untilMs) })),
          shares: shares.list(SHARES_MAX),
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
