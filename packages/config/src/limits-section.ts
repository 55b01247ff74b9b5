/** `[limits]`: what one client may use, and which of these limits a channel sets for itself. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

const NONE = '0: no limit'

const amount = (most: number, meaning: string) => v.pipe(whole(0, most), v.description(`${meaning}; ${NONE}`))
const dollars = (meaning: string) => v.pipe(v.number(), v.finite(), v.minValue(0), v.description(`${meaning}; ${NONE}`))

const TURNS_MAX = 100_000

/** The three keys, `of` one client or of a pool of clients. */
const keysOf = (of: string) => ({
  turns_per_hour: amount(TURNS_MAX, `Turns that ${of} may begin within any 60 minutes`),
  turns_in_flight: amount(
    TURNS_MAX,
    `Turns of ${of} that may run or wait at once; further messages wait, further requests are answered 429`,
  ),
  usd_per_day: dollars(`US dollars that the turns of ${of} may cost in a day (UTC), by the prices of [cost]`),
})

const one = keysOf('one client')
const stranger = keysOf('one sender whom only * admits')
const pool = keysOf('all senders whom only * admits together')
const operator = keysOf('one operator')

const loopTurns = v.pipe(
  whole(0, 1000),
  v.description(
    'Consecutive messages of a conversation, each within 10 seconds after an answer, after which it is paused for an hour; 0: never',
  ),
)

/** `[limits]`. */
export const limitsSection = {
  path: 'limits',
  schema: v.object({
    turns_per_hour: v.optional(one.turns_per_hour, 0),
    turns_in_flight: v.optional(one.turns_in_flight, 0),
    usd_per_day: v.optional(one.usd_per_day, 0),
    loop_turns: v.optional(loopTurns, 10),
    strangers: v.optional(
      v.object({
        turns_per_hour: v.optional(stranger.turns_per_hour, 20),
        turns_in_flight: v.optional(stranger.turns_in_flight, 1),
        usd_per_day: v.optional(stranger.usd_per_day, 0),
        pool: v.optional(
          v.object({
            turns_per_hour: v.optional(pool.turns_per_hour, 200),
            turns_in_flight: v.optional(pool.turns_in_flight, 4),
            usd_per_day: v.optional(
              v.pipe(
                pool.usd_per_day,
                v.description(`${v.getDescription(pool.usd_per_day)} (default: 1, or a tenth of [cost] daily_limit_usd if that is less)`),
              ),
            ),
          }),
          {},
        ),
      }),
      {},
    ),
    operators: v.optional(
      v.object({
        turns_per_hour: v.optional(operator.turns_per_hour, 0),
        turns_in_flight: v.optional(operator.turns_in_flight, 0),
        usd_per_day: v.optional(operator.usd_per_day, 0),
      }),
      {},
    ),
  }),
} as const

/** `limits` in the section of a channel. Absent keys are taken from `[limits]`; a pool of its own counts only the channel's senders. */
export const channelLimits = v.object({
  turns_per_hour: v.optional(one.turns_per_hour),
  turns_in_flight: v.optional(one.turns_in_flight),
  usd_per_day: v.optional(one.usd_per_day),
  loop_turns: v.optional(loopTurns),
  strangers: v.optional(
    v.object({
      turns_per_hour: v.optional(stranger.turns_per_hour),
      turns_in_flight: v.optional(stranger.turns_in_flight),
      usd_per_day: v.optional(stranger.usd_per_day),
      pool: v.optional(
        v.object({
          turns_per_hour: v.optional(pool.turns_per_hour),
          turns_in_flight: v.optional(pool.turns_in_flight),
          usd_per_day: v.optional(pool.usd_per_day),
        }),
      ),
    }),
  ),
})

export type LimitsConfig = v.InferOutput<typeof limitsSection.schema>
