/** The routes of reminders. A client lists and cancels its own; an operator lists and cancels the reminders of all clients. */
import { defineRoute, parseAgentKey, type Route, type RouteRequest } from '@sluice/sdk'
import * as v from 'valibot'
import type { Reminder, Reminders } from './reminders.ts'

const shown = v.object({
  id: v.string(),
  client: v.string(),
  session: v.string(),
  text: v.string(),
  due_at: v.string(),
  created_at: v.string(),
  cron: v.nullable(v.string()),
  timezone: v.nullable(v.string()),
})

export const shownReminder = ({ id, caller, session, text, nextMs, createdAtMs, schedule }: Reminder): v.InferOutput<typeof shown> => ({
  id,
  client: caller,
  session,
  text,
  due_at: new Date(nextMs).toISOString(),
  created_at: new Date(createdAtMs).toISOString(),
  cron: schedule?.expression ?? null,
  timezone: schedule?.timezone ?? null,
})

const isVisible =
  ({ role, device }: RouteRequest) =>
  ({ caller }: Reminder): boolean =>
    role === 'operator' || (device !== null && parseAgentKey(caller).key === `device:${device}`)

export const scheduleRoutes = (reminders: Reminders): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/schedules',
    summary: 'Lists reminders, the next one first: those of the client, or of all clients for an operator.',
    auth: 'client',
    answers: { 200: { description: 'The reminders', schema: v.object({ schedules: v.array(shown) }) } },
    handle: async (request) => ({ schedules: (await reminders.list()).filter(isVisible(request)).map(shownReminder) }),
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/schedules/:id',
    summary: 'Cancels a reminder.',
    auth: 'client',
    answers: { 200: { description: 'The cancelled reminder', schema: shown } },
    handle: async (request) => shownReminder(await reminders.cancel(request.params.id ?? '', isVisible(request))),
  }),
]
