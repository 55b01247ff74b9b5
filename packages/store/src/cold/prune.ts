/** Deletes data beyond its retention in small transactions. */
import type { DeletedRows, Retention } from '@sluice/sdk'
import { QUARTER_MS } from '../tables/turn-row.ts'
import { type ColdDatabase, statement, type Value } from './cold-database.ts'

const DROP_NONCES = 'DELETE FROM nonces WHERE key IN (SELECT key FROM nonces WHERE until <= $1 ORDER BY until LIMIT $2) RETURNING key'
/** The messages that still need the body stored with the first one of their batch, the row `first`. */
export const NEEDING = "SELECT 1 FROM inbox WHERE batch = first.number AND state <> 'done'"
// A reply finds its conversation through the message that it answers.
const REPLIES = 'SELECT 1 FROM outbox WHERE inbox = first.number'
const OLD_INBOX = `
  FROM inbox AS first WHERE ended_at < $1 AND received_at < $2
  AND NOT EXISTS (${NEEDING} AND (ended_at IS NULL OR ended_at >= $1)) AND NOT EXISTS (${REPLIES})`
const OLD_OUTBOX = 'FROM outbox WHERE ended_at < $1'
const DROP_OUTBOX = `DELETE FROM outbox WHERE number IN (SELECT number ${OLD_OUTBOX} ORDER BY ended_at LIMIT $2) RETURNING number`
const OLD_APPROVALS = 'FROM approvals WHERE settled_at < $1'
const DROP_APPROVALS = `
  DELETE FROM approvals WHERE number IN (SELECT number ${OLD_APPROVALS} ORDER BY settled_at LIMIT $2) RETURNING number`
const OLD_TURNS = 'FROM turns WHERE ended_at < $1'
const OLD_RUNS = 'FROM sop_runs WHERE ended_at < $1'
const DROP_RUNS = `DELETE FROM sop_runs WHERE number IN (SELECT number ${OLD_RUNS} ORDER BY ended_at LIMIT $2) RETURNING number`
const OLD_SAID = 'FROM messages WHERE at < $1'
const DROP_SAID = `
  DELETE FROM messages WHERE (session, up_to) IN (SELECT session, up_to ${OLD_SAID} ORDER BY at LIMIT $2)
  RETURNING octet_length(messages_json) AS bytes`
const DROP_SUMMARIES = `
  DELETE FROM session_summaries WHERE session IN (SELECT session FROM session_summaries WHERE up_to_at < $1 ORDER BY up_to_at LIMIT $2)
  RETURNING session`
const OLD_SESSIONS = 'FROM sessions WHERE last_active_at < $1'
const DROP_COSTS = 'DELETE FROM dropped_costs WHERE quarter < $1'
const DROP_ADMISSIONS = `
  DELETE FROM admissions WHERE (id, client) IN (SELECT id, client FROM admissions WHERE NOT open AND at < $1 ORDER BY at LIMIT $2)
  RETURNING id`
const DROP_LOOPS = 'DELETE FROM loops WHERE number < (SELECT min(number) FROM inbox)'
const DROP_SPENDING = 'DELETE FROM spending WHERE day < $1'
// `[notify] every_mins` is at most a week.
const DROP_HELD =
  "DELETE FROM held_back WHERE until < $1 AND news < CASE WHEN cause LIKE 'notice:%' THEN CAST($2 AS float8) ELSE CAST($1 AS float8) END"

const DAY_MS = 86_400_000
/** The longest span of a list of costs, which is longer than the period of any budget. */
const COSTS_KEPT_MS = 400 * DAY_MS

/** What differs between the databases. Each statement returns a row for each dropped one. */
export interface PruneDialect {
  /** Drop the messages, turns or sessions that the text selects, with all that belongs to them. */
  readonly dropMessages: (numbers: string) => string
  readonly dropTurns: (ids: string) => string
  readonly dropSessions: (numbers: string) => string
  /** Drop the contents of completed and of limited messages, at most the number of parameter 1. */
  readonly dropContent: string
  readonly dropLimitedContent: string
  /** Drops sums of costs of quarters before parameter 1. */
  readonly dropCosts: readonly string[]
  readonly unindexedState: string
  readonly space: Space
}

/** How much of the database is in use. */
export interface Space {
  /** The number of rows that are dropped between two looks at the space, so that little more than necessary is dropped. */
  readonly sliceRows: number
  usedBytes(): number | Promise<number>
  /** Called with the texts of dropped rows, for a database that measures seldom. */
  freed(bytes: number): void
}

export interface Pruned extends DeletedRows {
  /** The number of summaries of sessions. */
  readonly summaries: number
}

/** Other writes get their turn between two of these. */
export async function prune(db: ColdDatabase, dialect: PruneDialect, retention: Retention): Promise<Pruned> {
  const { endedBeforeMs, idsBeforeMs, historyBeforeMs, nowMs, limit } = retention
  const drop = (text: string, ...values: Value[]): Promise<number> => db.dropInSlices(limit, text, ...values)
  const dropAll = (text: string, ...values: Value[]) => db.dropInSlices(Number.MAX_SAFE_INTEGER, text, ...values)
  // Nonces have an expiry of their own instead of a retention, so all expired ones are dropped.
  await dropAll(DROP_NONCES, nowMs)
  await dropAll(DROP_ADMISSIONS, nowMs - DAY_MS)
  await db.write(
    ...[DROP_COSTS, ...dialect.dropCosts].map((text) => statement(text, Math.floor((nowMs - COSTS_KEPT_MS) / QUARTER_MS))),
    // No limit looks back further than a day.
    statement(DROP_SPENDING, Math.floor(nowMs / DAY_MS) - 1),
    statement(DROP_HELD, nowMs - DAY_MS, nowMs - 8 * DAY_MS),
    statement(DROP_LOOPS),
  )
  const replies = await drop(DROP_OUTBOX, endedBeforeMs)
  // A row ends after its arrival, so the query skips few rows because of their arrival or batch.
  const dropMessages = dialect.dropMessages(`SELECT number ${OLD_INBOX} ORDER BY ended_at LIMIT $3`)
  const messages = await drop(dropMessages, Math.min(endedBeforeMs, idsBeforeMs), idsBeforeMs)
  const approvals = await drop(DROP_APPROVALS, endedBeforeMs)
  const dropTurns = dialect.dropTurns(`SELECT id ${OLD_TURNS} ORDER BY ended_at LIMIT $2`)
  const turns = await drop(dropTurns, turnsBefore(retention))
  const runs = await drop(DROP_RUNS, endedBeforeMs)
  const historyTurns = await drop(DROP_SAID, historyBeforeMs)
  const summaries = await drop(DROP_SUMMARIES, historyBeforeMs)
  const conversations = await drop(dialect.dropSessions(`SELECT number ${OLD_SESSIONS} ORDER BY last_active_at LIMIT $2`), historyBeforeMs)
  const cut = await cutToSize(db, { ...dialect, dropTurns }, retention)
  return {
    messages,
    contents: cut.contents,
    replies: replies + cut.replies,
    approvals,
    turns: turns + cut.turns,
    runs,
    historyTurns: historyTurns + cut.historyTurns,
    conversations,
    summaries,
  }
}

const turnsBefore = ({ endedBeforeMs, keysBeforeMs }: Retention): number => Math.min(endedBeforeMs, keysBeforeMs)

/**
 * Drops the oldest rows until at most `bytesMax` bytes are in use: contents first, then replies, turns and conversations. Keeps dead
 * letters and unfinished work.
 */
async function cutToSize(
  db: ColdDatabase,
  { space, dropTurns, ...texts }: Omit<PruneDialect, 'dropTurns'> & { readonly dropTurns: string },
  { bytesMax, keysBeforeMs, nowMs, limit }: Retention,
) {
  const cut = async (text: string, ...values: Value[]): Promise<number> => {
    for (let dropped = 0; ; ) {
      const rows = Math.min(space.sliceRows, limit - dropped)
      if (rows <= 0 || (await space.usedBytes()) <= bytesMax) return dropped
      const freed = await db.write<{ bytes: number }>(statement(text, ...values, rows))
      space.freed(freed.reduce((sum, { bytes }) => sum + bytes, 0))
      dropped += freed.length
      if (freed.length < rows) return dropped
    }
  }
  const DROP_SENT = `
    DELETE FROM outbox WHERE number IN (
      SELECT number FROM outbox WHERE ended_at IS NOT NULL AND ${texts.unindexedState} = 'sent' ORDER BY ended_at LIMIT $1)
    RETURNING octet_length(text) + coalesce(octet_length(extras_json), 0) AS bytes`
  return {
    contents: (await cut(texts.dropLimitedContent)) + (await cut(texts.dropContent)),
    replies: await cut(DROP_SENT),
    turns: await cut(dropTurns, Math.min(nowMs, keysBeforeMs)),
    historyTurns: await cut(DROP_SAID, Number.MAX_SAFE_INTEGER),
  }
}

/** Returns the number of rows that are old enough to be dropped. */
export async function prunable(db: ColdDatabase, retention: Retention): Promise<DeletedRows> {
  const { endedBeforeMs, idsBeforeMs, historyBeforeMs } = retention
  const count = async (rows: string, ...values: number[]): Promise<number> =>
    (await db.get<{ count: number }>(`SELECT count(*) AS count ${rows}`, ...values))?.count ?? 0
  return {
    messages: await count(OLD_INBOX, Math.min(endedBeforeMs, idsBeforeMs), idsBeforeMs),
    contents: 0,
    replies: await count(OLD_OUTBOX, endedBeforeMs),
    approvals: await count(OLD_APPROVALS, endedBeforeMs),
    turns: await count(OLD_TURNS, turnsBefore(retention)),
    runs: await count(OLD_RUNS, endedBeforeMs),
    historyTurns: await count(OLD_SAID, historyBeforeMs),
    conversations: await count(OLD_SESSIONS, historyBeforeMs),
  }
}
