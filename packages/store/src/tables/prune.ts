/** Deletes data beyond its retention in small transactions and returns the space to the file system. */
import type { DeletedRows, Retention } from '@sluice/sdk'
import { dropOldCopies } from '../connection/copy-before-upgrade.ts'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { shrink, usedBytes } from './space.ts'
import { QUARTER_MS } from './turns.ts'

const DROP_NONCES = 'DELETE FROM nonces WHERE key IN (SELECT key FROM nonces WHERE until <= ? ORDER BY until LIMIT ?)'
// Messages that still need the body stored with the first one of their batch. The query repeats the condition of the partial index.
const NEEDING = "SELECT 1 FROM inbox WHERE batch = first.number AND state <> 'done'"
// A reply finds its conversation through the message that it answers.
const REPLIES = 'SELECT 1 FROM outbox WHERE inbox = first.number'
const OLD_INBOX = `
  FROM inbox AS first WHERE ended_at < ?1 AND received_at < ?2
  AND NOT EXISTS (${NEEDING} AND (ended_at IS NULL OR ended_at >= ?1)) AND NOT EXISTS (${REPLIES})`
const DROP_INBOX = `DELETE FROM inbox WHERE number IN (SELECT number ${OLD_INBOX} ORDER BY ended_at LIMIT ?3)`
/** Before rows are dropped: their numbers are never given again. */
const NOTE_NUMBER = 'UPDATE inbox_numbers SET highest = max(highest, coalesce((SELECT max(number) FROM inbox), 0)) WHERE rowid = 1'
const OLD_OUTBOX = 'FROM outbox WHERE ended_at < ?1'
const DROP_OUTBOX = `DELETE FROM outbox WHERE number IN (SELECT number ${OLD_OUTBOX} ORDER BY ended_at LIMIT ?2)`
const DROP_SENT = `
  DELETE FROM outbox WHERE number IN (
    SELECT number FROM outbox WHERE ended_at IS NOT NULL AND +state = 'sent' ORDER BY ended_at LIMIT ?)`
const OLD_APPROVALS = 'FROM approvals WHERE settled_at < ?1'
const DROP_APPROVALS = `DELETE FROM approvals WHERE number IN (SELECT number ${OLD_APPROVALS} ORDER BY settled_at LIMIT ?2)`
const OLD_RUNS = 'FROM sop_runs WHERE ended_at < ?1'
const DROP_RUNS = `DELETE FROM sop_runs WHERE number IN (SELECT number ${OLD_RUNS} ORDER BY ended_at LIMIT ?2)`
const OLD_SAID = 'FROM messages WHERE at < ?1'
const DROP_SAID = `DELETE FROM messages WHERE rowid IN (SELECT rowid ${OLD_SAID} ORDER BY at LIMIT ?2)`
const DROP_SUMMARIES = `
  DELETE FROM session_summaries WHERE session IN (SELECT session FROM session_summaries WHERE up_to_at < ? ORDER BY up_to_at LIMIT ?)`
const OLD_SESSIONS = 'FROM sessions WHERE last_active_at < ?1'
const DROP_SESSIONS = `DELETE FROM sessions WHERE number IN (SELECT number ${OLD_SESSIONS} ORDER BY last_active_at LIMIT ?2)`
const OLD_TURNS = 'FROM turns WHERE ended_at < ?1'
// A trigger keeps what they cost.
const DROP_TURNS = `DELETE FROM turns WHERE id IN (SELECT id ${OLD_TURNS} ORDER BY ended_at LIMIT ?2)`
const DROP_COSTS = ['DELETE FROM costs_by_model WHERE quarter < ?', 'DELETE FROM dropped_costs WHERE quarter < ?']
// The conditions on the content are those of the partial indexes.
const WITH_CONTENT = `
  SELECT number FROM inbox AS first
  WHERE state = 'done' AND (message_json IS NOT NULL OR raw IS NOT NULL) AND NOT EXISTS (${NEEDING}) ORDER BY number LIMIT ?`
const DROP_CONTENT = `UPDATE inbox SET message_json = NULL, raw = NULL WHERE number IN (${WITH_CONTENT})`

const DROP_LIMITED_CONTENT = `
  UPDATE inbox SET message_json = NULL, raw = NULL, batch = NULL WHERE number IN (
    SELECT number FROM inbox AS first
    WHERE state = 'limited' AND (message_json IS NOT NULL OR raw IS NOT NULL OR batch IS NOT NULL) AND NOT EXISTS (${NEEDING})
    ORDER BY number LIMIT ?)`
const LIMITS_KEPT_MS = 86_400_000
const DROP_ADMISSIONS = `
  DELETE FROM admissions WHERE (id, client) IN (SELECT id, client FROM admissions WHERE NOT open AND at < ? ORDER BY at LIMIT ?)`
const DROP_LOOPS = 'DELETE FROM loops WHERE number < (SELECT min(number) FROM inbox)'
// No limit looks back further than a day.
const DROP_LIMITS = [
  'DELETE FROM spending WHERE day < ?1 / 86400000 - 1',
  'DELETE FROM held_back WHERE until < ?1 - 86400000 AND news < ?1 - 86400000',
]

/** The number of rows dropped between two measurements of the size, so that little more than necessary is dropped. */
const CUT_SLICE_ROWS = 50

/** The longest span of a list of costs, which is longer than the period of any budget. */
const COSTS_KEPT_MS = 400 * 86_400_000

export interface Pruned extends DeletedRows {
  /** The number of summaries of sessions. */
  readonly summaries: number
}

/** Blocks the event loop for at most a few milliseconds at a time, however much there is to delete. */
export async function prune(db: Database, writer: Writer, file: string, retention: Retention): Promise<Pruned> {
  const { endedBeforeMs, historyBeforeMs, nowMs, limit } = retention
  const drop = (text: string, beforeMs: number): Promise<number> => writer.dropInSlices(limit, (rows) => db.run(text, beforeMs, rows))
  // Nonces have an expiry of their own instead of a retention, so all expired ones are dropped.
  await writer.dropInSlices(Number.MAX_SAFE_INTEGER, (rows) => db.run(DROP_NONCES, nowMs, rows))
  await writer.write(() => {
    for (const text of DROP_COSTS) db.run(text, Math.floor((nowMs - COSTS_KEPT_MS) / QUARTER_MS))
  })
  await writer.dropInSlices(Number.MAX_SAFE_INTEGER, (rows) => db.run(DROP_ADMISSIONS, nowMs - LIMITS_KEPT_MS, rows))
  await writer.write(() => {
    for (const text of DROP_LIMITS) db.run(text, nowMs)
    db.run(DROP_LOOPS)
  })
  const replies = await drop(DROP_OUTBOX, endedBeforeMs)
  // A row ends after its arrival, so the query skips few rows because of their arrival or batch.
  const { idsBeforeMs } = retention
  const messagesBeforeMs = Math.min(endedBeforeMs, idsBeforeMs)
  const messages = await writer.dropInSlices(limit, (rows) => {
    db.run(NOTE_NUMBER)
    return db.run(DROP_INBOX, messagesBeforeMs, idsBeforeMs, rows)
  })
  const approvals = await drop(DROP_APPROVALS, endedBeforeMs)
  const turns = await drop(DROP_TURNS, turnsBefore(retention))
  const runs = await drop(DROP_RUNS, endedBeforeMs)
  const historyTurns = await drop(DROP_SAID, historyBeforeMs)
  const summaries = await drop(DROP_SUMMARIES, historyBeforeMs)
  const conversations = await drop(DROP_SESSIONS, historyBeforeMs)
  const cut = await cutToSize(db, writer, retention)
  await shrink(db, writer)
  dropOldCopies(file, nowMs)
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
async function cutToSize(db: Database, writer: Writer, { bytesMax, keysBeforeMs, nowMs, limit }: Retention) {
  const cut = async (drop: (rows: number) => number): Promise<number> => {
    for (let dropped = 0; ; ) {
      const rows = Math.min(CUT_SLICE_ROWS, limit - dropped)
      if (rows <= 0 || usedBytes(db) <= bytesMax) return dropped
      const count = await writer.write(() => drop(rows))
      dropped += count
      if (count < rows) return dropped
    }
  }
  return {
    contents: (await cut((rows) => db.run(DROP_LIMITED_CONTENT, rows))) + (await cut((rows) => db.run(DROP_CONTENT, rows))),
    replies: await cut((rows) => db.run(DROP_SENT, rows)),
    turns: await cut((rows) => db.run(DROP_TURNS, Math.min(nowMs, keysBeforeMs), rows)),
    historyTurns: await cut((rows) => db.run(DROP_SAID, Number.MAX_SAFE_INTEGER, rows)),
  }
}

/** Returns the number of rows that are old enough to be dropped. */
export function prunable(db: Database, retention: Retention): DeletedRows {
  const { endedBeforeMs, idsBeforeMs, historyBeforeMs } = retention
  const count = (rows: string, ...values: number[]): number =>
    db.get<{ count: number }>(`SELECT count(*) AS count ${rows}`, ...values)?.count ?? 0
  return db.read(() => ({
    messages: count(OLD_INBOX, Math.min(endedBeforeMs, idsBeforeMs), idsBeforeMs),
    contents: 0,
    replies: count(OLD_OUTBOX, endedBeforeMs),
    approvals: count(OLD_APPROVALS, endedBeforeMs),
    turns: count(OLD_TURNS, turnsBefore(retention)),
    runs: count(OLD_RUNS, endedBeforeMs),
    historyTurns: count(OLD_SAID, historyBeforeMs),
    conversations: count(OLD_SESSIONS, historyBeforeMs),
  }))
}
