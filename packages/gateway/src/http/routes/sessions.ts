/** `/api/sessions`: what was said, to the device that said it and to no other. */
import { AppError, defineRoute, type Route, type SessionRow } from '@sluice/sdk'
import * as v from 'valibot'
import type { Runtime } from '../../runtime.ts'
import { isoTime } from '../iso-time.ts'
import { plainMessage } from '../plain-message.ts'
import { wholeText } from '../query.ts'
import { bareSession, checkSessionName, sessionNamespace, storedSession } from '../session-name.ts'

const PAGE_MAX = 200

const sessionSchema = v.object({
  session_id: v.string(),
  name: v.nullable(v.string()),
  created_at: v.string(),
  last_activity: v.string(),
  message_count: v.number(),
})

const messageSchema = v.object({
  role: v.string(),
  content: v.string(),
  tool_calls: v.optional(v.array(v.object({ id: v.string(), name: v.string(), input: v.unknown() }))),
  tool_results: v.optional(v.array(v.object({ id: v.string(), name: v.string(), output: v.unknown() }))),
})

const unknownSession = (): AppError => new AppError('not_found', 'There is no such session')

/** The session a path names, in the caller's namespace. */
const storedOf = (device: string | null, { id = '' }: Readonly<Record<string, string>>): string =>
  storedSession(device, checkSessionName(id, 'A session id'))

const shown = (device: string | null, { id, name, createdAtMs, lastActiveAtMs, messageCount }: SessionRow) => ({
  session_id: bareSession(device, id) ?? id,
  name,
  created_at: isoTime(createdAtMs),
  last_activity: isoTime(lastActiveAtMs),
  message_count: messageCount,
})

export function sessionRoutes({ store: { sessions } }: Runtime): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/sessions',
      summary: 'The sessions of this device, most recently active first',
      auth: 'client',
      query: v.object({ limit: wholeText(1, PAGE_MAX, 50), before: v.optional(v.pipe(v.string(), v.isoTimestamp())) }),
      answers: {
        200: {
          description: 'A page; `before` the last `last_activity` gives the next',
          schema: v.object({ sessions: v.array(sessionSchema) }),
        },
      },
      async handle({ device, query: { limit, before } }) {
        const rows = await sessions.list({ limit, prefix: sessionNamespace(device), ...(before ? { before: Date.parse(before) } : {}) })
        return { sessions: rows.map((row) => shown(device, row)) }
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/sessions/:id',
      summary: 'One session',
      auth: 'client',
      answers: { 200: { description: 'The session', schema: sessionSchema } },
      async handle({ device, params }) {
        const row = await sessions.get(storedOf(device, params))
        if (!row) throw unknownSession()
        return shown(device, row)
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/sessions/:id/messages',
      summary: 'The newest messages of a session, oldest first',
      auth: 'client',
      query: v.object({ limit: wholeText(1, PAGE_MAX, 50) }),
      answers: { 200: { description: 'The messages', schema: v.object({ session_id: v.string(), messages: v.array(messageSchema) }) } },
      async handle({ device, params, query: { limit } }) {
        const id = storedOf(device, params)
        const [row, history] = await Promise.all([sessions.get(id), sessions.history(id, limit)])
        if (!row) throw unknownSession()
        return { session_id: params.id, messages: history.map(plainMessage) }
      },
    }),
    defineRoute({
      method: 'PUT',
      path: '/api/sessions/:id',
      summary: 'Name a session',
      auth: 'client',
      body: v.object({ name: v.nullable(v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(200))) }),
      answers: { 200: { description: 'Named', schema: v.object({ session_id: v.string(), name: v.nullable(v.string()) }) } },
      async handle({ device, params, body: { name } }) {
        if (!(await sessions.rename(storedOf(device, params), name))) throw unknownSession()
        return { session_id: params.id, name }
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/sessions/:id',
      summary: 'Forget a session and its messages',
      auth: 'client',
      answers: { 200: { description: 'Forgotten', schema: v.object({ deleted: v.literal(true), session_id: v.string() }) } },
      async handle({ device, params }) {
        if (!(await sessions.delete(storedOf(device, params)))) throw unknownSession()
        return { deleted: true, session_id: params.id }
      },
    }),
  ]
}
