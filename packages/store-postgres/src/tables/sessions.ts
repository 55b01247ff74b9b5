/** Sessions, their messages and their summaries. The end of a turn writes the messages, in `turns.ts`. */
import type { SessionRow, SessionStore, TurnMessages } from '@sluice/sdk'
import { sql } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { type Histories, SUMMARY, type SummaryColumns, toSummary } from './history-cache.ts'

interface SessionColumns {
  readonly id: string
  readonly name: string | null
  readonly created_at: number
  readonly last_active_at: number
  readonly message_count: number
}

const COLUMNS = 'id, name, created_at, last_active_at, message_count'
const GET = `SELECT ${COLUMNS} FROM sessions WHERE id = $1`
const GET_SUMMARY = `SELECT ${SUMMARY} FROM session_summaries WHERE session = (SELECT number FROM sessions WHERE id = $1)`
const PUT_SUMMARY = `
  INSERT INTO session_summaries (session, ${SUMMARY})
  SELECT number, $4, $5, $6, $7, $8, $9 FROM sessions WHERE id = $1 AND message_count = $2
    AND coalesce((SELECT up_to FROM session_summaries WHERE session = number), 0) = $3
  ON CONFLICT (session) DO UPDATE SET up_to = excluded.up_to, up_to_at = excluded.up_to_at, text = excluded.text, model = excluded.model,
    at = excluded.at, untrusted = excluded.untrusted
    WHERE session_summaries.up_to = $3
  RETURNING session`
const LIST = `
  SELECT ${COLUMNS} FROM sessions
  WHERE ($1 = '' OR right(id, length($1)) = $1) AND (last_active_at, id) < ($2, $3) AND starts_with(key, $5)
  ORDER BY last_active_at DESC, id DESC LIMIT $4`
const SAID = `
  SELECT up_to AS "upTo", at AS "atMs", messages_json AS json FROM messages
  WHERE session = (SELECT number FROM sessions WHERE id = $1) AND up_to > $2 ORDER BY up_to LIMIT $3`
const RENAME = 'UPDATE sessions SET name = $2 WHERE id = $1 RETURNING id'

export const createSessions = (db: Database, histories: Histories): SessionStore => ({
  async history(id, limit) {
    return limit < 1 ? [] : (await histories.recent(db, id, limit)).messages.slice(-limit)
  },
  async conversation(id, limit) {
    const { messages, upTo, summary } = await histories.recent(db, id, limit)
    const count = Math.min(limit, upTo - (summary?.upTo ?? 0))
    return { upTo, summary, messages: count > 0 ? messages.slice(-count) : [] }
  },
  async summary(id) {
    const row = await db.get<SummaryColumns>(GET_SUMMARY, id)
    return row && toSummary(row)
  },
  async summarize(id, seen, { text, upTo, upToMs, model, atMs, untrusted }) {
    const values = [upTo, upToMs, text.toWellFormed(), model, atMs, untrusted]
    return (await db.writer.write(sql(PUT_SUMMARY, id, seen.upTo, seen.summary?.upTo ?? 0, ...values))).length > 0
  },
  async get(id) {
    const row = await db.get<SessionColumns>(GET, id)
    return row && toSession(row)
  },
  async list({ limit, before, prefix = '', suffix = '' }) {
    const page = [suffix, before?.lastActiveAtMs ?? Number.POSITIVE_INFINITY, before?.id ?? '', limit, prefix]
    return (await db.all<SessionColumns>(LIST, ...page)).map(toSession)
  },
  async messagesByTurn(id, { after, limit }) {
    const rows = await db.all<{ upTo: number; atMs: number; json: string }>(SAID, id, after, limit)
    return rows.map(({ upTo, atMs, json }): TurnMessages => ({ upTo, atMs, messages: JSON.parse(json) }))
  },
  rename: async (id, name) => (await db.writer.write(sql(RENAME, id, name))).length > 0,
  async erase(id, about) {
    const { eraseFromDatabase } = await import('./conversation-eraser.ts')
    return eraseFromDatabase(db, id, about)
  },
})

const toSession = (row: SessionColumns): SessionRow => ({
  id: row.id,
  name: row.name,
  createdAtMs: row.created_at,
  lastActiveAtMs: row.last_active_at,
  messageCount: row.message_count,
})
