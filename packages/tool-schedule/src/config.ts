/** The configuration section `[schedule]`. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

export const scheduleSection = {
  path: 'schedule',
  schema: v.object({
    max_per_client: v.optional(
      v.pipe(whole(0, 1000), v.description('The largest number of reminders of one client; 0: the agent sets no reminders')),
      20,
    ),
    min_interval_secs: v.optional(
      v.pipe(whole(1, 31_536_000), v.description('The shortest time between two turns of one repeated reminder')),
      300,
    ),
  }),
} as const

export type ScheduleConfig = v.InferOutput<typeof scheduleSection.schema>
