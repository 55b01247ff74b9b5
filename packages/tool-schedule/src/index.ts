/** Reminders: the agent starts a turn at a time, or by a schedule, that a client asked for. See `docs/schedule.md`. */
import { defineFeature } from '@sluice/sdk'
import { scheduleCommands } from './commands.ts'
import { scheduleSection } from './config.ts'
import { Reminders } from './reminders.ts'
import { scheduleRoutes } from './routes.ts'
import { scheduleCancel, scheduleCreate, scheduleList } from './schedule-tools.ts'

export default defineFeature({
  id: 'tool-schedule',
  section: scheduleSection,
  build(host, config) {
    const reminders = new Reminders(host, config)
    return {
      tools: [scheduleCreate(reminders, config), scheduleList(host, reminders), scheduleCancel(reminders)],
      routes: scheduleRoutes(reminders),
      commands: scheduleCommands(reminders),
      register: async () => reminders.start(),
      close: () => reminders.close(),
    }
  },
})
