/** `[limits]`: the limits of one client, and the ones among them that a channel sets for itself. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

const NONE = '0: no limit'

const amount = (most: number, meaning: string) => v.pipe(whole(0, most), v.description(`${meaning}; ${NONE}`))
const dollars = (meaning: string) => v.pipe(v.number(), v.finite(), v.minValue(0), v.description(`${meaning}; ${NONE}`))

const TURNS_MAX = 100_000
const SLOTS_MAX = 1024
const MB_MAX = 1_000_000
const STREAMS_MAX = 100_000

/** The part of `[agent] max_concurrent_turns` that the turns of one client may use, unless `turns_running` says a number. */
export const RUNNING = { client: 3 / 8, listed: 2 / 8, stranger: 1 / 8 } as const
/** The megabytes of one client, unless `waiting_mb` and `attachments_mb` say numbers. */
export const MEGABYTES = {
  client: { waiting: 16, attachments: 256 },
  listed: { waiting: 4, attachments: 64 },
  stranger: { waiting: 1, attachments: 16 },
} as const

/** The three keys, `of` one client or of a pool of clients. */
const keysOf = (of: string) => ({
  turns_per_hour: amount(TURNS_MAX, `Turns that ${of} may begin within any 60 minutes`),
  turns_in_flight: amount(
    TURNS_MAX,
    `Turns of ${of} that may run or wait at once; further messages wait, further requests are answered 429`,
  ),
  usd_per_day: dollars(`US dollars that the turns of ${of} may cost in a day (UTC), by the prices of [cost]`),
})

/** The share of `of` that one client may hold at once, so that the others find room. */
const sharesOf = (of: string, defaults: { readonly running?: string; readonly waitingMb?: string; readonly attachmentsMb?: string }) => {
  const unlessSet = (value: string | undefined) => (value === undefined ? '' : ` (default: ${value})`)
  return {
    turns_running: amount(
      SLOTS_MAX,
      `Turns of ${of} that run at once; further ones wait. One of [agent] max_concurrent_turns is kept for operators${unlessSet(defaults.running)}`,
    ),
    turns_waiting: amount(
      TURNS_MAX,
      `Turns of ${of} that wait at once; further requests are answered 429, further messages end as limited`,
    ),
    waiting_mb: amount(
      MB_MAX,
      `Megabytes of text in the waiting turns of ${of}; further requests are answered 429, further messages end as limited${unlessSet(defaults.waitingMb)}`,
    ),
    attachments_mb: amount(
      MB_MAX,
      `Megabytes of attachments and of results of tools of ${of} that are kept; the oldest results make room for newer files, and an attachment without room is not saved${unlessSet(defaults.attachmentsMb)}`,
    ),
  }
}

const ONE = 'one client'
const STRANGER = 'one sender whom only * admits'
const one = {
  ...keysOf(ONE),
  ...sharesOf(ONE, {
    running: '3 of 8 turns at once for a device, 2 of 8 for a sender',
    waitingMb: `${MEGABYTES.client.waiting} for a device, ${MEGABYTES.listed.waiting} for a sender`,
    attachmentsMb: `${MEGABYTES.client.attachments} for a device, ${MEGABYTES.listed.attachments} for a sender`,
  }),
}
const stranger = { ...keysOf(STRANGER), ...sharesOf(STRANGER, { running: '1 of 8 turns at once' }) }
const STRANGERS = 'all senders whom only * admits together'
const pool = { ...keysOf(STRANGERS), ...sharesOf(STRANGERS, {}) }
const operator = keysOf('one operator')

const loopTurns = v.pipe(
  whole(0, 1000),
  v.description(
    'Consecutive messages of a conversation, or of one writer of a shared room, each within 10 seconds after an answer, after which it is paused for an hour; 0: never',
  ),
)

/** `[limits]`. */
export const limitsSection = {
  path: 'limits',
  schema: v.object({
    turns_per_hour: v.optional(one.turns_per_hour, 0),
    turns_in_flight: v.optional(one.turns_in_flight, 0),
    usd_per_day: v.optional(one.usd_per_day, 0),
    loop_turns: v.optional(loopTurns, 20),
    turns_running: v.optional(one.turns_running),
    turns_waiting: v.optional(one.turns_waiting, 32),
    waiting_mb: v.optional(one.waiting_mb),
    attachments_mb: v.optional(one.attachments_mb),
    streams: v.optional(
      amount(STREAMS_MAX, 'Streams and WebSockets that one device with the role client has open at once; one more is answered 429'),
      16,
    ),
    downloads: v.optional(amount(STREAMS_MAX, 'Files that one device with the role client downloads at once; one more is answered 429'), 4),
    strangers: v.optional(
      v.object({
        turns_per_hour: v.optional(stranger.turns_per_hour, 20),
        turns_in_flight: v.optional(stranger.turns_in_flight, 1),
        usd_per_day: v.optional(stranger.usd_per_day, 0),
        turns_running: v.optional(stranger.turns_running),
        turns_waiting: v.optional(stranger.turns_waiting, 8),
        waiting_mb: v.optional(stranger.waiting_mb, MEGABYTES.stranger.waiting),
        attachments_mb: v.optional(stranger.attachments_mb, MEGABYTES.stranger.attachments),
        pool: v.optional(
          v.object({
            turns_per_hour: v.optional(pool.turns_per_hour, 200),
            turns_in_flight: v.optional(pool.turns_in_flight, 4),
            turns_waiting: v.optional(pool.turns_waiting, 200),
            attachments_mb: v.optional(pool.attachments_mb, 256),
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
  turns_running: v.optional(one.turns_running),
  turns_waiting: v.optional(one.turns_waiting),
  waiting_mb: v.optional(one.waiting_mb),
  attachments_mb: v.optional(one.attachments_mb),
  strangers: v.optional(
    v.object({
      turns_per_hour: v.optional(stranger.turns_per_hour),
      turns_in_flight: v.optional(stranger.turns_in_flight),
      usd_per_day: v.optional(stranger.usd_per_day),
      turns_running: v.optional(stranger.turns_running),
      turns_waiting: v.optional(stranger.turns_waiting),
      waiting_mb: v.optional(stranger.waiting_mb),
      attachments_mb: v.optional(stranger.attachments_mb),
      pool: v.optional(
        v.object({
          turns_per_hour: v.optional(pool.turns_per_hour),
          turns_in_flight: v.optional(pool.turns_in_flight),
          turns_waiting: v.optional(pool.turns_waiting),
          attachments_mb: v.optional(pool.attachments_mb),
          usd_per_day: v.optional(pool.usd_per_day),
        }),
      ),
    }),
  ),
})

export type LimitsConfig = v.InferOutput<typeof limitsSection.schema>
