/** Forgets what may be forgotten of inbox, outbox and approvals, a little at a time. */
import type { Prune } from '@sluice/sdk'
import type { Database } from './database.ts'
import type { GroupCommit } from './group-commit.ts'
import { inSlices } from './in-slices.ts'

/** Rows whose contents are measured in one transaction. */
const MEASURED_MAX = 1_000

const BYTES = 'coalesce(octet_length(raw), 0) + coalesce(octet_length(message_json), 0)'
const SIZE = 'SELECT up_to, bytes FROM inbox_size'
const NEXT_SIZE = `
  SELECT max(number) AS up_to, sum(bytes) AS bytes
  FROM (SELECT number, ${BYTES} AS bytes FROM inbox WHERE number > ? ORDER BY number LIMIT ${MEASURED_MAX})`
const SET_SIZE = 'UPDATE inbox_size SET up_to = ?, bytes = ?'
const DROP_NONCES = 'DELETE FROM nonces WHERE key IN (SELECT key FROM nonces WHERE until <= ? ORDER BY until LIMIT ?)'
// Messages that still need the body the first of their batch keeps. SQLite uses their index only where a query says its condition.
const NEEDING = "SELECT 1 FROM inbox WHERE batch = first.number AND state <> 'done'"
const DROP_INBOX = `
  DELETE FROM inbox
  WHERE number IN (
    SELECT number FROM inbox AS first WHERE ended_at < ?1 AND received_at < ?2
    AND NOT EXISTS (${NEEDING} AND (ended_at IS NULL OR ended_at >= ?1)) ORDER BY ended_at LIMIT ?3)
  RETURNING number, ${BYTES} AS bytes`
const DROP_OUTBOX = 'DELETE FROM outbox WHERE number IN (SELECT number FROM outbox WHERE ended_at < ? ORDER BY ended_at LIMIT ?)'
const DROP_APPROVALS = `
  DELETE FROM approvals WHERE number IN (SELECT number FROM approvals WHERE settled_at < ? ORDER BY settled_at LIMIT ?)`
const WITH_CONTENT = `
  SELECT number, ${BYTES} AS bytes FROM inbox AS first
  WHERE state = 'done' AND message_json IS NOT NULL AND number <= ? AND NOT EXISTS (${NEEDING}) ORDER BY number LIMIT ?`
const DROP_CONTENT = 'UPDATE inbox SET message_json = NULL, raw = NULL WHERE number = ?'

interface Size {
  readonly up_to: number
  readonly bytes: number
}

interface Sized {
  readonly number: number
  readonly bytes: number
}

/**
 * What arrives is not measured as it arrives, which would cost each message: each call first measures what is new. Nothing
 * here takes the event loop for longer than a few milliseconds, however much there is to forget.
 */
export async function prune(
  db: Database,
  writer: GroupCommit,
  { endedBeforeMs, idsBeforeMs, bytesMax, nowMs, limit }: Prune,
): Promise<number> {
  while (await writer.write(() => measureNext(db))) {}
  const nonces = await inSlices(writer, limit, (slice) => db.run(DROP_NONCES, nowMs, slice))
  // A row ends after it has come: so few are held back by this, or by their batch, and few rows are looked at in vain.
  const beforeMs = Math.min(endedBeforeMs, idsBeforeMs)
  const rows = await inSlices(writer, limit, (slice) => dropRows(db, beforeMs, idsBeforeMs, slice))
  const contents = await inSlices(writer, limit - rows, (slice) => dropContents(db, bytesMax, slice))
  const replies = await inSlices(writer, limit, (slice) => db.run(DROP_OUTBOX, endedBeforeMs, slice))
  const approvals = await inSlices(writer, limit, (slice) => db.run(DROP_APPROVALS, endedBeforeMs, slice))
  return nonces + rows + contents + replies + approvals
}

/** False once there is nothing new. */
function measureNext(db: Database): boolean {
  const size = sizeOf(db)
  const next = db.get<{ readonly up_to: number | null; readonly bytes: number | null }>(NEXT_SIZE, size.up_to)
  if (!next || next.up_to === null) return false
  db.run(SET_SIZE, next.up_to, size.bytes + (next.bytes ?? 0))
  return true
}

function dropRows(db: Database, endedBeforeMs: number, idsBeforeMs: number, limit: number): number {
  const dropped = db.all<Sized>(DROP_INBOX, endedBeforeMs, idsBeforeMs, limit)
  shrink(db, dropped)
  return dropped.length
}

/** Drops the contents of the oldest done rows until the rest is no more than `bytesMax`. */
function dropContents(db: Database, bytesMax: number, limit: number): number {
  const size = sizeOf(db)
  const dropped: Sized[] = []
  let excess = size.bytes - bytesMax
  if (excess <= 0) return 0
  for (const row of db.all<Sized>(WITH_CONTENT, size.up_to, limit)) {
    if (excess <= 0) break
    db.run(DROP_CONTENT, row.number)
    dropped.push(row)
    excess -= row.bytes
  }
  shrink(db, dropped)
  return dropped.length
}

function shrink(db: Database, dropped: readonly Sized[]): void {
  const { up_to, bytes } = sizeOf(db)
  const freed = dropped.reduce((sum, row) => (row.number <= up_to ? sum + row.bytes : sum), 0)
  if (freed > 0) db.run(SET_SIZE, up_to, bytes - freed)
}

const sizeOf = (db: Database): Size => db.get<Size>(SIZE) ?? { up_to: 0, bytes: 0 }
