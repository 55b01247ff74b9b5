/** `/api/sessions`: the conversations of the calling device; operators also read and erase the conversations of others. */

import { isoTime, nearestName } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import {
  eraseConversation,
  eraseLinked,
  exported,
  plainMessage,
  shownConversation,
  shownErased,
  shownSummary,
} from '@sluice/runtime/conversations'
import { AppError, type Channel, defineRoute, MAIN_AGENT, ROWS, type Route, type SessionRow, type Store } from '@sluice/sdk'
import * as v from 'valibot'
import { Download } from '../answers/download.ts'
import { conversationFileRoute } from './conversation-files.ts'
import { messagesRoute } from './messages.ts'
import { cursorOf, filterText, pageOf, readCursor, wholeText } from './query.ts'
import { contains, searchPage } from './search-page.ts'
import { type Caller, MESSAGES_MAX, Readers, storedOf, unknownSession } from './session-access.ts'
import { scopeOf, scopeQuery, shownId } from './session-scope.ts'

const PAGE_MAX = 200
/** The rows that one page of a search looks at, which bounds its time. */
const ROWS_LOOKED_AT_MAX = 2000

type Place = Pick<SessionRow, 'id' | 'lastActiveAtMs'>

const sessionSchema = v.object({
  session_id: v.string(),
  agent: v.string(),
  name: v.nullable(v.string()),
  channel: v.nullable(v.string()),
  sender: v.nullable(v.string()),
  created_at: v.string(),
  last_activity: v.string(),
  message_count: v.number(),
})

/** One conversation, as the API answers it. */
export type Session = v.InferOutput<typeof sessionSchema>

const summarySchema = v.object({
  text: v.string(),
  messages: v.pipe(v.number(), v.description('How many messages it covers, from the first of the session')),
  model: v.string(),
  at: v.string(),
  untrusted: v.pipe(v.boolean(), v.description('Whether a covered message has text from outside')),
})

const oneSchema = v.object({ ...sessionSchema.entries, summary: v.nullable(summarySchema) })
/** The answer of `GET /api/sessions/:id`. */
export type SessionWithSummary = v.InferOutput<typeof oneSchema>

const pageSchema = v.object({ sessions: v.array(sessionSchema), next: v.nullable(v.string()) })
/** The answer of `GET /api/sessions`. */
export type SessionsPage = v.InferOutput<typeof pageSchema>

const messageSchema = v.object({
  role: v.string(),
  content: v.string(),
  untrusted: v.optional(v.pipe(v.string(), v.description('The source of the first text from outside in it'))),
  tool_calls: v.optional(v.array(v.object({ id: v.string(), name: v.string(), input: v.unknown() }))),
  tool_results: v.optional(v.array(v.object({ id: v.string(), name: v.string(), output: v.unknown() }))),
})

const lineSchema = v.object({
  at: v.string(),
  ...messageSchema.entries,
  messages: v.optional(v.pipe(v.number(), v.description('The number of messages that a summary covers'))),
})
/** One line of the answer of `GET /api/sessions/:id/export`. */
export type SessionLine = v.InferOutput<typeof lineSchema>

const shown = (caller: Pick<Caller, 'device' | 'onControlSocket'>, row: SessionRow): Session => ({
  ...shownConversation(row),
  session_id: shownId(caller, row),
})

/** The time of the last activity in milliseconds since 1970, and the id. */
const cursorKey = v.tuple([v.number(), v.string()])

const listQuery = v.object({
  limit: wholeText(1, PAGE_MAX, 50),
  before: v.optional(v.pipe(v.string(), v.isoTimestamp())),
  cursor: filterText,
  ...scopeQuery,
  find: v.exactOptional(
    v.pipe(
      v.string(),
      v.minLength(1),
      v.maxLength(200),
      v.description('Only sessions with these words in their name, channel or sender, in any case'),
    ),
  ),
})

export const erasedSchema = v.object({
  said: v.pipe(v.number(), v.description('Stored turns of the conversation')),
  turns: v.number(),
  messages: v.number(),
  replies: v.number(),
  approvals: v.number(),
  memories: v.number(),
  files: v.pipe(v.number(), v.description('Attachments and results that no other conversation of the person names')),
  held: v.pipe(
    v.number(),
    v.description('Requests kept because they hold unfinished messages of other people; erase again once those are done'),
  ),
  purged: v.pipe(v.boolean(), v.description('False: the log of recent writes could not be emptied yet')),
  copies: v.pipe(v.array(v.string()), v.description('Copies from before upgrades, which still hold the erased data')),
})

/** What an erasure removed. */
export type Erasure = v.InferOutput<typeof erasedSchema>

/** Returns the session that the page begins after; undefined for the first page. */
function placeOf({ before, cursor }: Pick<v.InferOutput<typeof listQuery>, 'before' | 'cursor'>) {
  if (cursor === undefined) return before === undefined ? undefined : { lastActiveAtMs: Date.parse(before), id: '' }
  const [lastActiveAtMs, id] = readCursor(cursor, cursorKey)
  return { lastActiveAtMs, id }
}

export function sessionRoutes(runtime: Runtime): Route[] {
  const { store } = runtime
  const readers = new Readers(runtime)
  return [
    listRoute(store),
    erasePersonRoute(runtime),
    sessionRoute(store, readers),
    exportRoute(store, readers),
    sessionMessagesRoute(store, readers),
    messagesRoute(store.sessions, readers),
    conversationFileRoute(runtime, readers),
    nameRoute(store),
    eraseRoute(runtime),
  ]
}

const listRoute = ({ sessions }: Store): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/sessions',
    summary:
      'The sessions of this device, most recently active first. An operator may list all sessions, or the sessions of a channel or a sender',
    auth: 'client',
    query: listQuery,
    answers: {
      200: {
        description:
          'A page. Pass `next` as `cursor` to get the next page; null is the end. A page of a search may be short, or empty, although there is a next one',
        schema: pageSchema,
      },
    },
    async handle({ device, role, onControlSocket, query }) {
      const { limit, find } = query
      const scope = scopeOf({ device, role }, query)
      const before = placeOf(query)
      const list = (page: { readonly limit: number; readonly before?: Place }) => sessions.list({ ...page, ...scope })
      const cursorAt = ({ lastActiveAtMs, id }: Place) => cursorOf([lastActiveAtMs, id])
      const show = (row: SessionRow) => shown({ device, onControlSocket }, row)
      if (find === undefined) {
        const { page, next } = pageOf(await list({ limit: limit + 1, ...(before && { before }) }), limit, cursorAt)
        return { sessions: page.map(show), next }
      }
      const has = contains(find)
      const isFound = (row: SessionRow) => {
        const { name, channel, sender } = shownConversation(row)
        return has(name) || has(channel) || has(sender)
      }
      const placed = ({ lastActiveAtMs, id }: SessionRow): Place => ({ lastActiveAtMs, id })
      const search = { limit, before, lookedAtMax: ROWS_LOOKED_AT_MAX, list, placeOf: placed, isFound }
      const { page, next } = await searchPage<SessionRow, Place>(search)
      return { sessions: page.map(show), next: next && cursorAt(next) }
    },
  })

/** The channels of the catalogue, by the names under which their conversations are kept. */
const CATALOGUE_CHANNELS = ROWS.flatMap(([, { kind, section, moreSections = [] }]) =>
  kind === 'channel' && section ? [section, ...moreSections].map((path) => path.slice(path.lastIndexOf('.') + 1)) : [],
)

/** A wrong name must not look like proof that nothing is kept of a person. */
function nothingKept({ channel, sender }: { readonly channel: string; readonly sender: string }, channels: readonly Channel[]): AppError {
  const known = [...CATALOGUE_CHANNELS, ...channels.map(({ name }) => name)]
  if (known.includes(channel)) return new AppError('not_found', `Nothing is kept of ${sender} on ${channel}.`)
  const [, row] = ROWS.find(([, { target }]) => target === channel) ?? []
  const meant = row?.section?.split('.').at(-1) ?? nearestName(channel, known)
  const hint = meant === undefined ? "'sluice sessions list' shows the channels of conversations" : `did you mean '${meant}'?`
  return new AppError('invalid_request', `channel: there is no channel '${channel}', so nothing was looked up; ${hint}`)
}

const personErasedSchema = v.object({
  deleted: v.literal(true),
  erased: erasedSchema,
  linked: v.pipe(v.array(v.string()), v.description('The linked accounts that were erased with it')),
})

const erasePersonRoute = ({ store, files, people, clock, snapshot }: Runtime): Route =>
  defineRoute({
    method: 'DELETE',
    path: '/api/sessions',
    summary:
      'Erase a person: all conversations of one sender on a channel, with their memories and files, and those of the accounts that are linked with the sender',
    auth: 'operator',
    query: v.object({ channel: v.pipe(v.string(), v.minLength(1)), sender: v.pipe(v.string(), v.minLength(1)) }),
    answers: { 200: { description: 'Erased', schema: personErasedSchema } },
    async handle({ by, query }) {
      const agents = [...new Set([MAIN_AGENT, ...snapshot().registries.keys()])]
      const { erased, linked } = await eraseLinked({ store, files, snapshot, people, agents }, query, { atMs: clock.nowMs(), by })
      if (!erased) throw nothingKept(query, snapshot().channels)
      return { deleted: true, erased: shownErased(erased), linked }
    },
  })

const sessionRoute = ({ sessions }: Store, readers: Readers): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/sessions/:id',
    summary: 'One session',
    auth: 'client',
    answers: { 200: { description: 'The session', schema: oneSchema } },
    async handle({ by, device, role, onControlSocket, params }) {
      const id = storedOf({ device, role }, params)
      const [row, summary] = await Promise.all([sessions.get(id), sessions.summary(id)])
      if (!row) throw unknownSession()
      if (summary) await readers.note({ by, device, onControlSocket }, id)
      return { ...shown({ device, onControlSocket }, row), summary: summary ? shownSummary(summary) : null }
    },
  })

const exportRoute = ({ sessions }: Store, readers: Readers): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/sessions/:id/export',
    summary: 'The messages of a session, oldest first, one JSON object per line, and its summary at the end',
    auth: 'client',
    mediaType: 'application/x-ndjson',
    answers: { 200: { description: 'One message per line; a last line with the role `summary` if there is one', schema: lineSchema } },
    async handle({ by, device, role, onControlSocket, params }) {
      const id = storedOf({ device, role }, params)
      if (!(await sessions.get(id))) throw unknownSession()
      await readers.note({ by, device, onControlSocket }, id)
      const lines = exported(sessions, id)
      return new Download({
        headers: { 'content-type': 'application/x-ndjson' },
        open: async () => ({
          async read() {
            const { value, done } = await lines.next()
            return Buffer.from(done ? '' : `${JSON.stringify(value)}\n`)
          },
          [Symbol.asyncDispose]: async () => void (await lines.return(undefined)),
        }),
      })
    },
  })

const sessionMessagesRoute = ({ sessions }: Store, readers: Readers): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/sessions/:id/messages',
    summary: 'The newest messages of a session, or those up to a place that a search has found, oldest first',
    auth: 'client',
    query: v.object({
      limit: wholeText(1, MESSAGES_MAX, 50),
      up_to: v.exactOptional(v.pipe(v.string(), v.regex(/^\d{1,15}$/), v.transform(Number))),
    }),
    answers: {
      200: {
        description: 'The messages',
        schema: v.object({ session_id: v.string(), messages: v.array(v.object({ at: v.string(), ...messageSchema.entries })) }),
      },
    },
    async handle({ by, device, role, onControlSocket, params, query: { limit, up_to } }) {
      const id = storedOf({ device, role }, params)
      const session = await sessions.get(id)
      if (!session) throw unknownSession()
      await readers.note({ by, device, onControlSocket }, id)
      // No turn has no message, so as many turns after this place have all of the newest messages.
      const upTo = Math.min(up_to ?? session.messageCount, session.messageCount)
      const turns = await sessions.messagesByTurn(id, { after: Math.max(0, upTo - limit), limit, ...(up_to !== undefined && { upTo }) })
      const messages = turns.flatMap((turn) => turn.messages.map((message) => ({ at: isoTime(turn.atMs), ...plainMessage(message) })))
      return { session_id: params.id, messages: messages.slice(-limit) }
    },
  })

const nameRoute = ({ sessions }: Store): Route =>
  defineRoute({
    method: 'PUT',
    path: '/api/sessions/:id',
    summary: 'Name a session',
    auth: 'client',
    body: v.object({ name: v.nullable(v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(200))) }),
    answers: { 200: { description: 'Named', schema: v.object({ session_id: v.string(), name: v.nullable(v.string()) }) } },
    async handle({ device, role, params, body: { name } }) {
      if (!(await sessions.rename(storedOf({ device, role }, params), name))) throw unknownSession()
      return { session_id: params.id, name }
    },
  })

const eraseRoute = ({ store, files, clock, snapshot }: Runtime): Route =>
  defineRoute({
    method: 'DELETE',
    path: '/api/sessions/:id',
    summary: 'Erase a session: its conversation, the contents of its turns, messages and replies, and its files',
    auth: 'client',
    answers: {
      200: { description: 'Erased', schema: v.object({ deleted: v.literal(true), session_id: v.string(), erased: erasedSchema }) },
    },
    async handle({ device, role, by, params }) {
      const erased = await eraseConversation({ store, files, snapshot }, storedOf({ device, role }, params), { atMs: clock.nowMs(), by })
      if (!erased) throw unknownSession()
      return { deleted: true, session_id: params.id, erased: shownErased(erased) }
    },
  })
