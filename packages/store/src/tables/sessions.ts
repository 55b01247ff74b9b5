/** Sessions and their messages. The end of a turn writes the messages, in `turns.ts`. */
import type { SessionRow, SessionStore, TurnMessages } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import type { HistoryCache, Recent } from './history-cache.ts'
import { getSummary, putSummary } from './summaries.ts'

interface SessionColumns {
  readonly id: string
  readonly name: string | null
  readonly created_at: number
  readonly last_active_at: number
  readonly message_count: number
}

const COLUMNS = 'id, name, created_at, last_active_at, message_count'

/** One row for each turn, and one without messages for a session without any. */
const HISTORY = `
  SELECT message_count AS count, messages_json AS json, summary.session IS NOT NULL AS isSummarized
  FROM sessions
  LEFT JOIN messages AS message ON message.session = number AND message.up_to > message_count - ?
  LEFT JOIN session_summaries AS summary ON summary.session = number
  WHERE id = ? ORDER BY message.up_to`
const GET = `SELECT ${COLUMNS} FROM sessions WHERE id = ?`
/** The condition that an id ends with parameter 1. */
const ENDS = "(?1 = '' OR substr(id, -length(?1)) = ?1)"
const LIST = `
  SELECT ${COLUMNS} FROM sessions WHERE ${ENDS} AND (last_active_at, id) < (?2, ?3) ORDER BY last_active_at DESC, id DESC LIMIT ?4`
// The plus signs prevent SQLite from scanning all sessions by activity to find the few with this prefix.
const LIST_PREFIX = `
  SELECT ${COLUMNS} FROM sessions WHERE ${ENDS} AND key >= ?5 AND key < ?6 AND (+last_active_at, id) < (?2, ?3)
  ORDER BY +last_active_at DESC, id DESC LIMIT ?4`
/** A prefix that is the owner of sessions, and a suffix that is the last part of their keys. Both have indexes. */
const OWNER = /^([^/]+)\/$/
const TAIL = /^\/([^/]*)$/
const LIST_OWNER = `
  SELECT ${COLUMNS} FROM sessions WHERE owner = ?1 AND (last_active_at, id) < (?2, ?3) ORDER BY last_active_at DESC, id DESC LIMIT ?4`
// The plus signs make SQLite use the index of tails: a sender has few sessions.
const LIST_TAIL = `
  SELECT ${COLUMNS} FROM sessions WHERE owner = ?1 AND tail = ?5 AND (+last_active_at, id) < (?2, ?3)
  ORDER BY +last_active_at DESC, id DESC LIMIT ?4`
const SAID = `
  SELECT up_to AS upTo, at AS atMs, messages_json AS json FROM sessions JOIN messages ON session = number AND up_to > ?
  WHERE id = ? ORDER BY up_to LIMIT ?`
const RENAME = 'UPDATE sessions SET name = ? WHERE id = ?'

interface HistoryColumns {
  readonly count: number
  readonly json: string | null
  readonly isSummarized: number
}

export const createSessions = (db: Database, writer: Writer, cache: HistoryCache, file: string): SessionStore => ({
  async history(id, limit) {
    return limit < 1 ? [] : recent(db, cache, id, limit).messages.slice(-limit)
  },
  async conversation(id, limit) {
    const { messages, upTo, summary } = recent(db, cache, id, limit)
    const count = Math.min(limit, upTo - (summary?.upTo ?? 0))
    return { upTo, summary, messages: count > 0 ? messages.slice(-count) : [] }
  },
  async summary(id) {
    return db.read(() => getSummary(db, id))
  },
  async summarize(id, seen, summary) {
    const isStored = await writer.write(() => putSummary(db, id, seen, summary))
    if (isStored) cache.delete(id)
    return isStored
  },
  async get(id) {
    const row = db.read(() => db.get<SessionColumns>(GET, id))
    return row && toSession(row)
  },
  async list({ limit, before, prefix = '', suffix = '' }) {
    const end = [before?.lastActiveAtMs ?? Number.POSITIVE_INFINITY, before?.id ?? '', limit]
    const [, owner] = OWNER.exec(prefix) ?? []
    const [, tail] = TAIL.exec(suffix) ?? []
    return (await readPage(owner, tail)).map(toSession)

    function readPage(ofOwner: string | undefined, ofTail: string | undefined): Promise<SessionColumns[]> {
      if (ofOwner !== undefined && suffix === '') return db.page(LIST_OWNER, ofOwner, ...end)
      if (ofOwner !== undefined && ofTail !== undefined) return db.page(LIST_TAIL, ofOwner, ...end, ofTail)
      if (prefix === '') return db.page(LIST, suffix, ...end)
      return db.page(LIST_PREFIX, suffix, ...end, prefix, endOfPrefix(prefix))
    }
  },
  async messagesByTurn(id, { after, limit }) {
    const rows = await db.page<{ upTo: number; atMs: number; json: string }>(SAID, after, id, limit)
    return rows.map(({ upTo, atMs, json }): TurnMessages => ({ upTo, atMs, messages: JSON.parse(json) }))
  },
  rename: (id, name) => writer.write(() => db.run(RENAME, name, id) > 0),
  async erase(id, options) {
    const { eraseFromFiles } = await import('./conversation-eraser.ts')
    return eraseFromFiles({ db, writer, cache, file }, id, options)
  },
})

/** Returns at least the newest `limit` messages, from the cache or else from the file. */
function recent(db: Database, cache: HistoryCache, id: string, limit: number): Recent {
  return db.read(() => {
    cache.expireIfForeign(db)
    const known = cache.get(id, limit)
    if (known) return known
    const rows = db.all<HistoryColumns>(HISTORY, limit, id)
    const chunks = rows.flatMap(({ json }) => json ?? [])
    const summary = rows[0]?.isSummarized ? getSummary(db, id) : undefined
    return cache.fill(id, { chunks, upTo: rows[0]?.count ?? 0, summary }, limit)
  })
}

const toSession = (row: SessionColumns): SessionRow => ({
  id: row.id,
  name: row.name,
  createdAtMs: row.created_at,
  lastActiveAtMs: row.last_active_at,
  messageCount: row.message_count,
})

/** Returns the least value above every text that starts with `prefix`. SQLite sorts a blob above any text. */
function endOfPrefix(prefix: string): string | Uint8Array {
  const points = Array.from(prefix.toWellFormed())
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const point = last.codePointAt(0) ?? 0
    // The code points in between are surrogates, which valid text does not contain.
    if (point < 0x10ffff) return points.join('') + String.fromCodePoint(point === 0xd7ff ? 0xe000 : point + 1)
  }
  return Uint8Array.of(0)
}
