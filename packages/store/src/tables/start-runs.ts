/** Starts the runs of an event within their limits, and remembers the event in the same commit. */
import type { SopDispatch, SopStart, SopStore } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { prepareAudit } from './audit-log.ts'
import { hashKey, joinTexts, rowKey } from './hashed-keys.ts'
import type { KeyTable } from './key-table.ts'
import { endMessage } from './message-attempt.ts'

const KNOWN = 'SELECT dispatch_json AS json FROM sop_events WHERE key = ?'
const REMEMBER = 'INSERT INTO sop_events (key, at, dispatch_json, idempotency) VALUES (?, ?, ?, ?)'
const RUNNING = 'SELECT count(*) AS count FROM sop_runs WHERE sop = ? AND ended_at IS NULL'
const ALL_RUNNING = 'SELECT count(*) AS count FROM sop_runs WHERE ended_at IS NULL'
const LAST_END = 'SELECT ended_at AS atMs FROM sop_ends WHERE sop = ?'
// An end in the future means that the clock was set back. It is corrected, so that no cooldown lasts longer than configured.
const CORRECT_END = 'UPDATE sop_ends SET ended_at = ?1 WHERE sop = ?2 AND ended_at > ?1'
const ADD = 'INSERT INTO sop_runs (id, sop, run_json) VALUES (?, ?, ?)'

type About = Parameters<SopStore['start']>[1]

/** Returns the function that starts runs. Rejects and releases the idempotency key when nothing was stored. */
export function createStartRuns(db: Database, writer: Writer, keys: KeyTable): SopStore['start'] {
  return async (starts, about) => {
    const idempotency = about.idempotency ? hashKey(about.idempotency) : null
    try {
      const dispatched = await writer.write(prepareStarts(db, starts, about, idempotency))
      if (idempotency !== null) keys.ended(idempotency, null, about.atMs)
      return dispatched
    } catch (error) {
      if (idempotency !== null) keys.release(idempotency)
      throw error
    }
  }
}

/** Builds keys and JSON outside the transaction. The returned write starts the runs, or returns the result of the first delivery. */
function prepareStarts(
  db: Database,
  starts: readonly SopStart[],
  { atMs, key: eventKey, inbox }: About,
  idempotency: string | null,
): () => readonly SopDispatch[] {
  const key = eventKey === undefined ? null : rowKey(joinTexts(eventKey))
  const units = starts.map((start) => prepareStart(db, start, atMs))
  return () => {
    const known = key && db.get<{ json: string }>(KNOWN, key)
    const dispatched: readonly SopDispatch[] = known ? JSON.parse(known.json) : units.map((unit) => unit())
    const newKey = known ? null : key
    if (newKey !== null || idempotency !== null) db.run(REMEMBER, newKey, atMs, JSON.stringify(dispatched), idempotency)
    if (inbox !== undefined) endMessage(db, inbox, atMs)
    return dispatched
  }
}

/** The limits are checked inside the transaction, because another process may start runs, too. */
function prepareStart(db: Database, { run, audit, limits, skipped }: SopStart, atMs: number): () => SopDispatch {
  const json = JSON.stringify(run)
  const record = prepareAudit(db, audit)
  return () => {
    const reason = reachedLimit(db, run.sop, limits, atMs)
    if (reason !== undefined) {
      prepareAudit(db, [skipped(reason)])()
      return { sop: run.sop, status: 'skipped', reason }
    }
    db.run(ADD, run.id, run.sop, json)
    record()
    return { sop: run.sop, status: 'started', runId: run.id }
  }
}

/** Returns the limit that prevents a start, as a reason for the audit log; undefined when there is none. */
function reachedLimit(
  db: Database,
  sop: string,
  { concurrentMax, totalMax, cooldownMs }: SopStart['limits'],
  atMs: number,
): string | undefined {
  if (count(db, RUNNING, sop) >= concurrentMax) return `too many runs of this procedure (max_concurrent = ${concurrentMax})`
  if (count(db, ALL_RUNNING) >= totalMax) return `too many runs of all procedures (max_concurrent_total = ${totalMax})`
  const leftMs = cooldownMs > 0 ? cooldownLeftMs(db, sop, cooldownMs, atMs) : 0
  return leftMs > 0 ? `cooling down for another ${Math.ceil(leftMs / 1000)} s` : undefined
}

function cooldownLeftMs(db: Database, sop: string, cooldownMs: number, atMs: number): number {
  db.run(CORRECT_END, atMs, sop)
  const endedAtMs = db.get<{ atMs: number }>(LAST_END, sop)?.atMs
  return endedAtMs === undefined ? 0 : endedAtMs + cooldownMs - atMs
}

const count = (db: Database, text: string, ...values: readonly string[]): number => db.get<{ count: number }>(text, ...values)?.count ?? 0
