/** Forgets what may be forgotten, a little at a time, and gives the space back. */
import type { Forgotten, Retention } from '@sluice/sdk'
import { dropOldCopies } from './copy-before-upgrade.ts'
import type { Database } from './database.ts'
import type { GroupCommit } from './group-commit.ts'
import { inSlices } from './in-slices.ts'
import { dropOldCosts, dropTurns } from './prune-turns.ts'
import { shrink, usedBytes } from './space.ts'

const DROP_NONCES = 'DELETE FROM nonces WHERE key IN (SELECT key FROM nonces WHERE until <= ? ORDER BY until LIMIT ?)'
// Messages that still need the body the first of their batch keeps. SQLite uses their index only where a query says its condition.
const NEEDING = "SELECT 1 FROM inbox WHERE batch = first.number AND state <> 'done'"
// Replies find their conversation through the message they answer.
const REPLIES = 'SELECT 1 FROM outbox WHERE inbox = first.number'
const OLD_INBOX = `
  FROM inbox AS first WHERE ended_at < ?1 AND received_at < ?2
  AND NOT EXISTS (${NEEDING} AND (ended_at IS NULL OR ended_at >= ?1)) AND NOT EXISTS (${REPLIES})`
const DROP_INBOX = `DELETE FROM inbox WHERE number IN (SELECT number ${OLD_INBOX} ORDER BY ended_at LIMIT ?3)`
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
const OLD_SESSIONS = 'FROM sessions WHERE last_active_at < ?1'
const DROP_SESSIONS = `DELETE FROM sessions WHERE number IN (SELECT number ${OLD_SESSIONS} ORDER BY last_active_at LIMIT ?2)`
const OLD_TURNS = 'FROM turns WHERE ended_at < ?1'
const WITH_CONTENT = `
  SELECT number FROM inbox AS first
  WHERE state = 'done' AND message_json IS NOT NULL AND NOT EXISTS (${NEEDING}) ORDER BY number LIMIT ?`
const DROP_CONTENT = `UPDATE inbox SET message_json = NULL, raw = NULL WHERE number IN (${WITH_CONTENT})`

/** Rows dropped between two looks at the size, so that little more goes than has to. */
const CUT_SLICE = 50

interface Options {
  readonly db: Database
  readonly writer: GroupCommit
  readonly file: string
}

/** Nothing here takes the event loop for longer than a few milliseconds, however much there is to forget. */
export async function prune({ db, writer, file }: Options, retention: Retention): Promise<Forgotten> {
  const { endedBeforeMs, saidBeforeMs, nowMs, limit } = retention
  const drop = (text: string, beforeMs: number): Promise<number> => inSlices(writer, limit, (slice) => db.run(text, beforeMs, slice))
  // Values whose own time is over are no part of the policy: however many came, all of them go.
  await inSlices(writer, Number.MAX_SAFE_INTEGER, (slice) => db.run(DROP_NONCES, nowMs, slice))
  await writer.write(() => dropOldCosts(db, nowMs))
  const replies = await drop(DROP_OUTBOX, endedBeforeMs)
  // A row ends after it has come: so few are held back by this, or by their batch, and few rows are looked at in vain.
  const { idsBeforeMs } = retention
  const messagesBeforeMs = Math.min(endedBeforeMs, idsBeforeMs)
  const messages = await inSlices(writer, limit, (slice) => db.run(DROP_INBOX, messagesBeforeMs, idsBeforeMs, slice))
  const approvals = await drop(DROP_APPROVALS, endedBeforeMs)
  const turns = await inSlices(writer, limit, (slice) => dropTurns(db, turnsBefore(retention), slice))
  const runs = await drop(DROP_RUNS, endedBeforeMs)
  const said = await drop(DROP_SAID, saidBeforeMs)
  const conversations = await drop(DROP_SESSIONS, saidBeforeMs)
  const cut = await cutToSize({ db, writer }, retention)
  await shrink(db, writer)
  dropOldCopies(file, nowMs)
  return {
    messages,
    contents: cut.contents,
    replies: replies + cut.replies,
    approvals,
    turns: turns + cut.turns,
    runs,
    said: said + cut.said,
    conversations,
  }
}

const turnsBefore = ({ endedBeforeMs, keysBeforeMs }: Retention): number => Math.min(endedBeforeMs, keysBeforeMs)

/** Drops the oldest until the rest is no more than `bytesMax`, least missed first; dead letters and unfinished work stay. */
async function cutToSize({ db, writer }: Omit<Options, 'file'>, { bytesMax, keysBeforeMs, nowMs, limit }: Retention) {
  const cut = async (drop: (slice: number) => number): Promise<number> => {
    for (let dropped = 0; ; ) {
      const slice = Math.min(CUT_SLICE, limit - dropped)
      if (slice <= 0 || usedBytes(db) <= bytesMax) return dropped
      const count = await writer.write(() => drop(slice))
      dropped += count
      if (count < slice) return dropped
    }
  }
  return {
    contents: await cut((slice) => db.run(DROP_CONTENT, slice)),
    replies: await cut((slice) => db.run(DROP_SENT, slice)),
    turns: await cut((slice) => dropTurns(db, Math.min(nowMs, keysBeforeMs), slice)),
    said: await cut((slice) => db.run(DROP_SAID, Number.MAX_SAFE_INTEGER, slice)),
  }
}

/** How many rows are old enough to be dropped. */
export function prunable(db: Database, retention: Retention): Forgotten {
  const { endedBeforeMs, idsBeforeMs, saidBeforeMs } = retention
  const count = (rows: string, ...values: number[]): number =>
    db.get<{ count: number }>(`SELECT count(*) AS count ${rows}`, ...values)?.count ?? 0
  return db.read(() => ({
    messages: count(OLD_INBOX, Math.min(endedBeforeMs, idsBeforeMs), idsBeforeMs),
    contents: 0,
    replies: count(OLD_OUTBOX, endedBeforeMs),
    approvals: count(OLD_APPROVALS, endedBeforeMs),
    turns: count(OLD_TURNS, turnsBefore(retention)),
    runs: count(OLD_RUNS, endedBeforeMs),
    said: count(OLD_SAID, saidBeforeMs),
    conversations: count(OLD_SESSIONS, saidBeforeMs),
  }))
}
