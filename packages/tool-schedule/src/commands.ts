/** The commands `sluice schedule list` and `sluice schedule cancel`, for operators. */
import { AppError, CATALOGUE, type Command, printableLine } from '@sluice/sdk'
import type { Reminders } from './reminders.ts'
import { shownReminder } from './routes.ts'
import { reminderLine } from './schedule-tools.ts'

const HELP = CATALOGUE['tool-schedule'].commandHelp

export const scheduleCommands = (reminders: Reminders): Command[] => [
  {
    name: 'schedule list',
    ...HELP['schedule list'],
    async run({ json, print }) {
      const all = await reminders.list()
      if (json) print(JSON.stringify(all.map(shownReminder)))
      else if (all.length === 0) print('There are no reminders.')
      else for (const reminder of all) print(printableLine(`${reminderLine(reminder)} (${reminder.caller})`))
      return 0
    },
  },
  {
    name: 'schedule cancel',
    ...HELP['schedule cancel'],
    async run({ args, json, print }) {
      const [id, ...more] = args
      if (id === undefined || more.length > 0) throw new AppError('invalid_request', 'usage: sluice schedule cancel <id>')
      const cancelled = await reminders.cancel(id)
      print(json ? JSON.stringify(shownReminder(cancelled)) : `Cancelled ${id}.`)
      return 0
    },
  },
]
