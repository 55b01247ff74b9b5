/** Sessions and their messages. Messages are written by the end of a turn, in `turns.ts`. */
import type { SessionRow, SessionStore } from '@sluice/sdk'
import type { Database } from './database.ts'
import type { GroupCommit } from './group-commit.ts'
import type { Chunk, HistoryCache } from './history-cache.ts'

interface SessionColumns {
  readonly id: string
  readonly name: string | null
  readonly created_at: number
  readonly last_active_at: number
  readonly message_count: number
}

const COLUMNS = 'id, name, created_at, last_active_at, message_count'

const HISTORY = `
  SELECT up_to AS upTo, messages_json AS json FROM sessions JOIN messages ON session = number AND up_to > message_count - ?
  WHERE id = ? ORDER BY up_to`
const GET = `SELECT ${COLUMNS} FROM sessions WHERE id = ?`
const LIST = `SELECT ${COLUMNS} FROM sessions WHERE last_active_at < ? ORDER BY last_active_at DESC LIMIT ?`
// The plus signs keep SQLite from walking through everybody's sessions by activity to find the few with this prefix.
const LIST_PREFIX = `
  SELECT ${COLUMNS} FROM sessions WHERE id >= ? AND id < ? AND +last_active_at < ?
  ORDER BY +last_active_at DESC LIMIT ?`
const RENAME = 'UPDATE sessions SET name = ? WHERE id = ?'
const DELETE = 'DELETE FROM sessions WHERE id = ?'

export const createSessions = (db: Database, writer: GroupCommit, cache: HistoryCache): SessionStore => ({
  async history(id, limit) {
    if (limit < 1) return []
    return db.read(() => {
      cache.expireIfForeign(db)
      const known = cache.get(id, limit)
      if (known) return known
      const chunks = db.all<Chunk>(HISTORY, limit, id)
      return cache.fill(id, chunks).slice(-limit)
    })
  },
  async get(id) {
    const row = db.read(() => db.get<SessionColumns>(GET, id))
    return row && toSession(row)
  },
  async list({ limit, before = Number.POSITIVE_INFINITY, prefix = '' }) {
    const rows = db.read(() =>
      prefix === ''
        ? db.all<SessionColumns>(LIST, before, limit)
        : db.all<SessionColumns>(LIST_PREFIX, prefix, endOfPrefix(prefix), before, limit),
    )
    return rows.map(toSession)
  },
  rename: (id, name) => writer.write(() => db.run(RENAME, name, id) > 0),
  async delete(id) {
    const deleted = await writer.write(() => db.run(DELETE, id) > 0)
    cache.delete(id)
    return deleted
  },
})

const toSession = (row: SessionColumns): SessionRow => ({
  id: row.id,
  name: row.name,
  createdAtMs: row.created_at,
  lastActiveAtMs: row.last_active_at,
  messageCount: row.message_count,
})

/** The least value above every text that starts with `prefix`; SQLite sorts any blob above any text. */
function endOfPrefix(prefix: string): string | Uint8Array {
  const points = Array.from(prefix.toWellFormed())
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const point = last.codePointAt(0) ?? 0
    // The code points between these two are surrogates, which stand in no valid text.
    if (point < 0x10ffff) return points.join('') + String.fromCodePoint(point === 0xd7ff ? 0xe000 : point + 1)
  }
  return Uint8Array.of(0)
}
