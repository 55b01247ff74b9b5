/** `GET /api/history`: turns, failures, durations and waiting by the hour, with the tokens and cost of each model. */
import { isoTime } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import { AppError, defineRoute, type Route } from '@sluice/sdk'
import * as v from 'valibot'

const HOUR_MS = 3_600_000
const RANGES = ['day', 'week', 'month'] as const
const HOURS = { day: 24, week: 7 * 24, month: 31 * 24 } as const

const modelSchema = v.object({
  model: v.pipe(v.nullable(v.string()), v.description('Null for turns without an answer and for deleted turns')),
  input_tokens: v.number(),
  output_tokens: v.number(),
  cost_usd: v.number(),
})
type OfModel = v.InferOutput<typeof modelSchema>

const hourSchema = v.object({
  at: v.pipe(v.string(), v.description('The begin of the hour')),
  turns: v.pipe(v.number(), v.description('The turns that have ended; of a procedure, its runs')),
  failed: v.pipe(v.number(), v.description('Those without an answer, except the aborted ones')),
  p95_ms: v.pipe(
    v.nullable(v.number()),
    v.description('95 of 100 answered turns took at most so long, within a quarter; null without one'),
  ),
  queue_secs: v.pipe(
    v.nullable(v.number()),
    v.description('The longest time that a message or reply waited, looked at each minute; null for one channel or procedure'),
  ),
  models: v.pipe(v.array(modelSchema), v.description('Empty for one channel or procedure')),
})

export const historyRoute = ({ store: { turns }, clock, history }: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/history',
    summary:
      'The last day, week or month by the hour, in all or of one channel or procedure. It is kept for 31 days, also over restarts; the nodes of a cluster are added up',
    auth: 'operator',
    query: v.object({
      range: v.optional(v.picklist(RANGES), 'day'),
      channel: v.exactOptional(v.pipe(v.string(), v.description('Only the turns of this channel'))),
      procedure: v.exactOptional(v.pipe(v.string(), v.description('Only the runs of this procedure'))),
    }),
    answers: {
      200: {
        description: 'Each hour of the range, oldest first',
        schema: v.object({ range: v.picklist(RANGES), hours: v.array(hourSchema) }),
      },
    },
    async handle({ query: { range, channel, procedure } }) {
      if (channel !== undefined && procedure !== undefined)
        throw new AppError('invalid_request', 'Ask for the history of a channel or of a procedure, not of both.')
      const subject = channel !== undefined ? { channel } : procedure !== undefined ? { procedure } : undefined
      const lastMs = Math.floor(clock.nowMs() / HOUR_MS) * HOUR_MS
      const sinceMs = lastMs - (HOURS[range] - 1) * HOUR_MS
      const [counted, models] = await Promise.all([
        history.list(sinceMs, subject),
        subject ? new Map<number, OfModel[]>() : modelsByHour(turns, sinceMs, lastMs + HOUR_MS),
      ])
      const counts = new Map(counted.map((hour) => [hour.atMs, hour]))
      const hours = Array.from({ length: HOURS[range] }, (_, at) => {
        const atMs = sinceMs + at * HOUR_MS
        const hour = counts.get(atMs)
        return {
          at: isoTime(atMs),
          turns: hour?.turns ?? 0,
          failed: hour?.failed ?? 0,
          p95_ms: hour?.p95Ms ?? null,
          queue_secs: hour ? hour.queueSecs : subject ? null : 0,
          models: models.get(atMs) ?? [],
        }
      })
      return { range, hours }
    },
  })

/** Adds up the agents. */
async function modelsByHour(turns: Runtime['store']['turns'], sinceMs: number, untilMs: number): Promise<ReadonlyMap<number, OfModel[]>> {
  const hours = new Map<number, OfModel[]>()
  for (const { atMs, model, inputTokens, outputTokens, costUsd } of await turns.costs({
    sinceMs,
    untilMs,
    periodMs: HOUR_MS,
    offsetMs: 0,
  })) {
    const models = hours.get(atMs) ?? []
    hours.set(atMs, models)
    const sum = models.find((one) => one.model === model) ?? { model, input_tokens: 0, output_tokens: 0, cost_usd: 0 }
    if (!models.includes(sum)) models.push(sum)
    sum.input_tokens += inputTokens
    sum.output_tokens += outputTokens
    sum.cost_usd += costUsd
  }
  return hours
}
