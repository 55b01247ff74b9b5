/** How sessions are read in SQLite: the newest messages from memory, and lists by the indexes. */
import type { SessionStore } from '@sluice/sdk'
import { type Statement, statement } from '../cold/cold-database.ts'
import { SESSION_COLUMNS, type SessionReads } from '../cold/sessions.ts'
import { GET_SUMMARY, type SummaryColumns, toSummary } from '../cold/summaries.ts'
import type { Database } from '../connection/database.ts'
import type { ErasedFiles } from './conversation-eraser.ts'
import type { HistoryCache, Recent } from './history-cache.ts'

/** One row for each turn, and one without messages for a session without any. */
const HISTORY = `
  SELECT message_count AS count, messages_json AS json, summary.session IS NOT NULL AS "isSummarized"
  FROM sessions
  LEFT JOIN messages AS message ON message.session = number AND message.up_to > message_count - $1
  LEFT JOIN session_summaries AS summary ON summary.session = number
  WHERE id = $2 ORDER BY message.up_to`
/** The condition that an id ends with parameter 1. */
const ENDS = "($1 = '' OR substr(id, -length($1)) = $1)"
const LIST = `
  SELECT ${SESSION_COLUMNS} FROM sessions WHERE ${ENDS} AND (last_active_at, id) < ($2, $3) ORDER BY last_active_at DESC, id DESC LIMIT $4`
// The plus signs prevent SQLite from scanning all sessions by activity to find the few with this prefix.
const LIST_PREFIX = `
  SELECT ${SESSION_COLUMNS} FROM sessions WHERE ${ENDS} AND key >= $5 AND key < $6 AND (+last_active_at, id) < ($2, $3)
  ORDER BY +last_active_at DESC, id DESC LIMIT $4`
/** A prefix that is the owner of sessions, and a suffix that is the last part of their keys. Both have indexes. */
const OWNER = /^([^/]+)\/$/
const TAIL = /^\/([^/]*)$/
const LIST_OWNER = `
  SELECT ${SESSION_COLUMNS} FROM sessions WHERE owner = $1 AND (last_active_at, id) < ($2, $3) ORDER BY last_active_at DESC, id DESC LIMIT $4`
// The plus signs make SQLite use the index of tails: a sender has few sessions.
const LIST_TAIL = `
  SELECT ${SESSION_COLUMNS} FROM sessions WHERE owner = $1 AND tail = $5 AND (+last_active_at, id) < ($2, $3)
  ORDER BY +last_active_at DESC, id DESC LIMIT $4`

interface HistoryColumns {
  readonly count: number
  readonly json: string | null
  readonly isSummarized: number
}

export const sessionReads = (files: ErasedFiles): SessionReads => ({
  recent: (id, limit) => recent(files.db, files.cache, id, limit),
  forget: (id) => files.cache.delete(id),
  page,
  async erase(id, options) {
    const { eraseFromFiles } = await import('./conversation-eraser.ts')
    return eraseFromFiles(files, id, options)
  },
})

function page({ limit, before, prefix = '', suffix = '' }: Parameters<SessionStore['list']>[0]): Statement {
  const end = [before?.lastActiveAtMs ?? Number.POSITIVE_INFINITY, before?.id ?? '', limit]
  const [, owner] = OWNER.exec(prefix) ?? []
  const [, tail] = TAIL.exec(suffix) ?? []
  if (owner !== undefined && suffix === '') return statement(LIST_OWNER, owner, ...end)
  if (owner !== undefined && tail !== undefined) return statement(LIST_TAIL, owner, ...end, tail)
  if (prefix === '') return statement(LIST, suffix, ...end)
  return statement(LIST_PREFIX, suffix, ...end, prefix, endOfPrefix(prefix))
}

/** Returns at least the newest `limit` messages, from the cache or else from the file. */
function recent(db: Database, cache: HistoryCache, id: string, limit: number): Recent {
  return db.read(() => {
    cache.expireIfForeign(db)
    const known = cache.get(id, limit)
    if (known) return known
    const rows = db.all<HistoryColumns>(HISTORY, limit, id)
    const chunks = rows.flatMap(({ json }) => json ?? [])
    const summary = rows[0]?.isSummarized ? db.get<SummaryColumns>(GET_SUMMARY, id) : undefined
    return cache.fill(id, { chunks, upTo: rows[0]?.count ?? 0, summary: summary && toSummary(summary) }, limit)
  })
}

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
