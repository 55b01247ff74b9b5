/** Sessions, their messages and their summaries. The end of a turn writes the messages. */
import type { SessionRow, SessionStore, TurnMessages } from '@sluice/sdk'
import type { Recent } from '../tables/history-cache.ts'
import { type ColdDatabase, type Statement, statement } from './cold-database.ts'
import { GET_SUMMARY, putSummary, type SummaryColumns, toSummary } from './summaries.ts'

interface SessionColumns {
  readonly id: string
  readonly name: string | null
  readonly created_at: number
  readonly last_active_at: number
  readonly message_count: number
}

export const SESSION_COLUMNS = 'id, name, created_at, last_active_at, message_count'
const GET = `SELECT ${SESSION_COLUMNS} FROM sessions WHERE id = $1`
const SAID = `
  SELECT up_to AS "upTo", at AS "atMs", messages_json AS json FROM messages
  WHERE session = (SELECT number FROM sessions WHERE id = $1) AND up_to > $2 AND up_to <= coalesce($4, up_to) ORDER BY up_to LIMIT $3`
const RENAME = 'UPDATE sessions SET name = $2 WHERE id = $1 RETURNING id'

/** What each database does in its own way. */
export interface SessionReads extends Pick<SessionStore, 'erase'> {
  /** Returns at least the newest `limit` messages of a session, from memory where possible. */
  recent(id: string, limit: number): Recent | Promise<Recent>
  /** Drops what is in memory of a session whose summary is new. */
  forget(id: string): void
  /** Returns the query of a page of sessions, which selects `SESSION_COLUMNS`. */
  page(options: Parameters<SessionStore['list']>[0]): Statement
}

export const createSessions = (db: ColdDatabase, reads: SessionReads): SessionStore => ({
  async history(id, limit) {
    return limit < 1 ? [] : (await reads.recent(id, limit)).messages.slice(-limit)
  },
  async conversation(id, limit) {
    const { messages, upTo, summary } = await reads.recent(id, limit)
    const count = Math.min(limit, upTo - (summary?.upTo ?? 0))
    return { upTo, summary, messages: count > 0 ? messages.slice(-count) : [] }
  },
  async summary(id) {
    const row = await db.get<SummaryColumns>(GET_SUMMARY, id)
    return row && toSummary(row)
  },
  async summarize(id, seen, summary) {
    const isStored = (await db.write(putSummary(id, seen, summary))).length > 0
    if (isStored) reads.forget(id)
    return isStored
  },
  async get(id) {
    const row = await db.get<SessionColumns>(GET, id)
    return row && toSession(row)
  },
  async list(options) {
    const { text, values } = reads.page(options)
    return (await db.all<SessionColumns>(text, ...values)).map(toSession)
  },
  async messagesByTurn(id, { after, limit, upTo = null }) {
    const rows = await db.all<{ upTo: number; atMs: number; json: string }>(SAID, id, after, limit, upTo)
    return rows.map((row): TurnMessages => ({ upTo: row.upTo, atMs: row.atMs, messages: JSON.parse(row.json) }))
  },
  rename: async (id, name) => (await db.write(statement(RENAME, id, name))).length > 0,
  erase: (id, about) => reads.erase(id, about),
})

const toSession = (row: SessionColumns): SessionRow => ({
  id: row.id,
  name: row.name,
  createdAtMs: row.created_at,
  lastActiveAtMs: row.last_active_at,
  messageCount: row.message_count,
})
