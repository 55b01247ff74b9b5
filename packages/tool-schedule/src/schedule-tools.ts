/** The tools `schedule_create`, `schedule_list` and `schedule_cancel`. A client sees and changes only its own reminders. */
import { AppError, defineTool, type Host, parseAgentKey, type Tool, type ToolContext, whole } from '@sluice/sdk'
import * as v from 'valibot'
import type { ScheduleConfig } from './config.ts'
import type { Reminder, Reminders } from './reminders.ts'

const TEXT_CHARS_MAX = 4000
const MINUTES_MAX = 2_635_200
const described = <const Schema extends v.GenericSchema>(schema: Schema, text: string) => v.pipe(schema, v.description(text))
const shortText = (charsMax: number) => v.pipe(v.string(), v.minLength(1), v.maxLength(charsMax))

/** `schedule_create`: sets a reminder for this conversation. */
export const scheduleCreate = (reminders: Reminders, { max_per_client }: ScheduleConfig): Tool =>
  defineTool({
    name: 'schedule_create',
    description:
      'Sets a reminder: at its time you get its text as a message of the user in this conversation, and your answer goes to the user. Give in_minutes, at or cron; with text alone it sets nothing and returns the present time.',
    risk: 'write',
    decider: 'asker',
    egress: false,
    untrusted: false,
    input: v.object({
      text: described(v.pipe(shortText(TEXT_CHARS_MAX), v.regex(/\S/, 'is empty')), 'What you shall do or say then, complete in itself'),
      in_minutes: v.optional(described(whole(1, MINUTES_MAX), 'Minutes from now')),
      at: v.optional(described(shortText(40), 'A time such as 2026-03-01T09:00+01:00, or without offset together with timezone')),
      cron: v.optional(described(shortText(100), 'A cron expression of 5 fields, to repeat the reminder')),
      timezone: v.optional(
        described(shortText(60), 'The IANA time zone of the user, such as Europe/Oslo, for cron and for at without offset'),
      ),
    }),
    available: () => max_per_client > 0,
    async run({ text, in_minutes, at, cron, timezone }, context) {
      const { session, standing, isInRoom = false } = context
      const caller = callerOf(context)
      if (session === null) throw new AppError('invalid_request', 'A reminder needs a conversation, and this turn has none')
      const reminder = await reminders.create(
        { caller, standing, session, isInRoom, text: text.toWellFormed() },
        { inMinutes: in_minutes, at, cron, timezone },
      )
      return `The reminder is set: ${reminderLine(reminder)}`
    },
  })

/** `schedule_list`: the reminders of the client; in a room, whose people read the answer, only the ones that the client set there. */
export const scheduleList = (host: Pick<Host, 'clock'>, reminders: Reminders): Tool =>
  defineTool({
    name: 'schedule_list',
    description: 'Returns the present time, and the reminders of the user with their ids and times.',
    risk: 'read',
    decider: 'asker',
    egress: false,
    // Any turn of the client may have set one, also one that had read untrusted text.
    untrusted: true,
    input: v.object({}),
    async run(_, context) {
      const { isInRoom, session } = context
      const all = await reminders.list(callerOf(context))
      const own = isInRoom ? all.filter((reminder) => reminder.session === session) : all
      const now = `It is now ${new Date(host.clock.nowMs()).toISOString()}.`
      return own.length === 0 ? `${now} There are no reminders.` : [now, ...own.map(reminderLine)].join('\n')
    },
  })

/** `schedule_cancel`: removes a reminder of the client. */
export const scheduleCancel = (reminders: Reminders): Tool =>
  defineTool({
    name: 'schedule_cancel',
    description: 'Cancels a reminder of the user, by its id.',
    risk: 'write',
    decider: 'asker',
    egress: false,
    untrusted: false,
    input: v.object({ id: described(shortText(64), 'The id, as schedule_list returns it') }),
    async run({ id }, context) {
      const caller = callerOf(context)
      await reminders.cancel(id, (reminder) => reminder.caller === caller)
      return `Cancelled ${id}.`
    },
  })

/** A procedure has cron triggers instead of reminders, and the answer of its session has no reader. */
function callerOf({ caller }: ToolContext): string {
  if (caller === undefined || parseAgentKey(caller).key.startsWith('sop:'))
    throw new AppError('forbidden', 'Reminders belong to a client, and this turn has none')
  return caller
}

/** Returns one line with the id, the times and the text. */
export function reminderLine({ id, nextMs, schedule, text }: Reminder): string {
  const repeats = schedule ? `, repeated by "${schedule.expression}" in ${schedule.timezone}` : ''
  return `${id} at ${new Date(nextMs).toISOString()}${repeats}: ${JSON.stringify(text)}`
}
