/** `GET /api/messages`: the words of conversations, found without an index, which each message would have to pay for. */
import { isoTime } from '@sluice/kit'
import { plainMessage, shownConversation } from '@sluice/runtime/conversations'
import { AppError, defineRoute, type Route, type SessionRow, type SessionStore, type TurnMessages } from '@sluice/sdk'
import * as v from 'valibot'
import { cursorOf, filterText, readCursor, wholeText } from './query.ts'
import { contains, searchPage } from './search-page.ts'
import type { Readers } from './session-access.ts'
import { isInScope, type Scope, scopeOf, scopeQuery, shownId } from './session-scope.ts'

const PAGE_MAX = 50
/** The turns that one page looks at, which bounds its time. */
const TURNS_LOOKED_AT_MAX = 1000
/** A turn with many results of tools may take a megabyte, so few are in memory at once. */
const TURNS_READ = 25
const SESSIONS_READ = 100
/** For one address: a page may read a thousand turns. */
const CALLS_PER_MINUTE = 60
const EXCERPT_CHARS = 200
/** The part of an excerpt that is before the words. */
const LEAD_CHARS = 60

const foundSchema = v.object({
  session_id: v.string(),
  agent: v.string(),
  name: v.nullable(v.string()),
  channel: v.nullable(v.string()),
  sender: v.nullable(v.string()),
  at: v.string(),
  role: v.picklist(['user', 'assistant']),
  text: v.pipe(v.string(), v.description(`At most ${EXCERPT_CHARS} characters around the words`)),
  up_to: v.pipe(v.number(), v.description('The place: `GET /api/sessions/{id}/messages` with this `up_to` answers the messages up to it')),
})

const pageSchema = v.object({ found: v.array(foundSchema), next: v.nullable(v.string()) })
/** The answer of `GET /api/messages`. */
export type MessagesPage = v.InferOutput<typeof pageSchema>
/** A turn in which words were found. */
export type FoundMessage = MessagesPage['found'][number]

/** The time of the last activity of a session in milliseconds since 1970, its id, and the place of a turn in it. */
const cursorKey = v.tuple([v.number(), v.string(), v.number()])

interface Looked {
  readonly session: SessionRow
  /** Absent for a session without messages. */
  readonly turn?: TurnMessages
}

/** Yields the turns of a session before a place, the newest first. */
async function* turnsBefore(sessions: SessionStore, session: SessionRow, place: number): AsyncGenerator<Looked> {
  if (session.messageCount === 0) yield { session }
  // No turn has no message, so as many turns after this place have all messages of the step.
  for (let upTo = place - 1; upTo > 0; upTo -= TURNS_READ) {
    const turns = await sessions.messagesByTurn(session.id, { after: Math.max(0, upTo - TURNS_READ), limit: TURNS_READ, upTo })
    for (const turn of turns.toReversed()) yield { session, turn }
  }
}

/** Yields the turns of the sessions of a scope, the most recently active session first. `after` is the place where the page before has ended. */
async function* turnsOf(sessions: SessionStore, scope: Scope, after?: v.InferOutput<typeof cursorKey>): AsyncGenerator<Looked> {
  let before: Pick<SessionRow, 'id' | 'lastActiveAtMs'> | undefined
  if (after) {
    const [lastActiveAtMs, id, upTo] = after
    before = { lastActiveAtMs, id }
    const begun = upTo > 0 ? await sessions.get(id) : undefined
    // It may have new turns since, and is then listed before the place of the page.
    if (begun) yield* turnsBefore(sessions, { ...begun, lastActiveAtMs }, upTo)
  }
  for (;;) {
    const rows: SessionRow[] = await sessions.list({ limit: SESSIONS_READ, ...scope, ...(before && { before }) })
    for (const row of rows) yield* turnsBefore(sessions, row, row.messageCount + 1)
    before = rows.at(-1)
    if (rows.length < SESSIONS_READ) return
  }
}

async function take(looked: AsyncGenerator<Looked>, limit: number): Promise<Looked[]> {
  const taken: Looked[] = []
  while (taken.length < limit) {
    const { value, done } = await looked.next()
    if (done) break
    taken.push(value)
  }
  return taken
}

/** Returns the first message of a turn, of a person or the agent, that has the words. */
function foundIn({ turn }: Looked, has: (text: string) => boolean) {
  for (const message of turn?.messages ?? []) {
    const { role, content } = plainMessage(message)
    if ((role === 'user' || role === 'assistant') && has(content)) return { role, content }
  }
  return undefined
}

/** Returns the text around the words. A cut halves no character. */
function excerptOf(text: string, words: string): string {
  const from = Math.max(0, text.toLowerCase().indexOf(words.toLowerCase()) - LEAD_CHARS)
  const to = from + EXCERPT_CHARS
  const cut = text.slice(from, to).replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, '')
  return `${from > 0 ? '…' : ''}${cut}${to < text.length ? '…' : ''}`
}

export const messagesRoute = (sessions: SessionStore, readers: Readers): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/messages',
    summary:
      'The turns of this device whose messages have these words, of the most recently active conversation first. An operator may search all conversations, or those of a channel or a sender; the audit log records each of another client that is shown',
    auth: 'client',
    callsPerMinute: CALLS_PER_MINUTE,
    query: v.object({
      ...scopeQuery,
      find: v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description('The words, in any case')),
      limit: wholeText(1, PAGE_MAX, 20),
      cursor: filterText,
    }),
    answers: {
      200: {
        description: `A page, which looks at no more than ${TURNS_LOOKED_AT_MAX} turns. Pass \`next\` as \`cursor\` to get the next page; null is the end. A page may be short, or empty, although there is a next one`,
        schema: pageSchema,
      },
    },
    async handle({ by, device, role, onControlSocket, query }) {
      const { find, limit, cursor } = query
      const scope = scopeOf({ device, role }, query)
      const after = cursor === undefined ? undefined : readCursor(cursor, cursorKey)
      if (after && !isInScope(scope, after[1])) throw new AppError('invalid_request', 'The cursor is not one that this list returned.')
      const has = contains(find)
      const looked = turnsOf(sessions, scope, after)
      const { page, next } = await searchPage<Looked, string>({
        limit,
        lookedAtMax: TURNS_LOOKED_AT_MAX,
        readRows: TURNS_READ,
        list: ({ limit: rows }) => take(looked, rows),
        placeOf: ({ session: { lastActiveAtMs, id }, turn }) => cursorOf([lastActiveAtMs, id, turn?.upTo ?? 0]),
        isFound: (row) => foundIn(row, has) !== undefined,
      })
      for (const { session } of page) await readers.note({ by, device, onControlSocket }, session.id)
      const found = page.flatMap((row): FoundMessage[] => {
        const message = foundIn(row, has)
        if (!message || !row.turn) return []
        const { agent, name, channel, sender } = shownConversation(row.session)
        const { atMs, upTo } = row.turn
        const session_id = shownId({ device, onControlSocket }, row.session)
        const text = excerptOf(message.content, find)
        return [{ session_id, agent, name, channel, sender, at: isoTime(atMs), role: message.role, text, up_to: upTo }]
      })
      return { found, next }
    },
  })
