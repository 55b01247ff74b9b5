/** When conversations begin again without their history: `reset` of `[sessions]`, of a channel and of an agent. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

const HOURS_MAX = 8760

export const resetKeys = v.pipe(
  v.object({
    idle_hours: v.optional(
      v.pipe(whole(1, HOURS_MAX), v.description('Hours without a turn after which the next message begins a new conversation')),
    ),
    daily_at: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, 'must be a time of the day such as 04:00'),
        v.description('The time of the day, in the time zone of [agent], from which the next message begins a new conversation'),
      ),
    ),
  }),
  v.description('When a new conversation begins; the messages of the earlier one are kept, and no later turn reads them'),
)
