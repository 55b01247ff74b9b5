/** `GET /api/costs`: what turns cost over time, by agent and model. */
import { isoTime } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import { AppError, defineRoute, type Route } from '@sluice/sdk'
import * as v from 'valibot'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The longest span of each period: an answer stays readable, and the store is not read for long. */
const SPANS = {
  hour: { periodMs: HOUR_MS, defaultMs: DAY_MS, maxMs: 31 * DAY_MS },
  day: { periodMs: DAY_MS, defaultMs: 30 * DAY_MS, maxMs: 400 * DAY_MS },
} as const

const offsetText = v.pipe(
  v.string(),
  v.regex(/^-?\d{1,3}$/),
  v.transform(Number),
  v.check((minutes) => Math.abs(minutes) <= 840 && minutes % 15 === 0, 'It must be a multiple of 15 from -840 to 840'),
  v.description('The minutes that the time zone of the days is ahead of UTC; default: 0'),
)

export const costsRoute = ({ store: { turns }, clock }: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/costs',
    summary: 'What turns cost in each hour or day, by agent and model. Times are rounded up to the next quarter of an hour',
    auth: 'operator',
    query: v.object({
      by: v.optional(v.picklist(['hour', 'day']), 'day'),
      since: v.exactOptional(v.pipe(v.string(), v.isoTimestamp(), v.description('Default: 30 days ago; for hours, a day ago'))),
      until: v.exactOptional(v.pipe(v.string(), v.isoTimestamp(), v.description('Default: now'))),
      offset_minutes: v.exactOptional(offsetText),
    }),
    answers: {
      200: {
        description: 'The periods in which turns ended, oldest first',
        schema: v.object({
          by: v.picklist(['hour', 'day']),
          since: v.string(),
          until: v.string(),
          costs: v.array(
            v.object({
              at: v.pipe(v.string(), v.description('The begin of the period')),
              agent: v.string(),
              model: v.pipe(v.nullable(v.string()), v.description('Null for turns without an answer and for deleted turns')),
              cost_usd: v.number(),
              turns: v.number(),
              input_tokens: v.number(),
              output_tokens: v.number(),
            }),
          ),
        }),
      },
    },
    async handle({ query: { by, since, until, offset_minutes = 0 } }) {
      const { periodMs, defaultMs, maxMs } = SPANS[by]
      const untilMs = until === undefined ? clock.nowMs() + 1 : Date.parse(until)
      const sinceMs = since === undefined ? untilMs - defaultMs : Date.parse(since)
      if (untilMs - sinceMs > maxMs) throw new AppError('invalid_request', `Ask for at most ${maxMs / DAY_MS} days by ${by}`)
      const periods = await turns.costs({ sinceMs, untilMs, periodMs, offsetMs: -offset_minutes * 60_000 })
      const costs = periods.map(({ atMs, agent, model, costUsd, turns, inputTokens, outputTokens }) => ({
        at: isoTime(atMs),
        agent,
        model,
        cost_usd: costUsd,
        turns,
        input_tokens: inputTokens,
        output_tokens: outputTokens,
      }))
      return { by, since: isoTime(sinceMs), until: isoTime(untilMs), costs }
    },
  })
