/** Starts what an event asks for and no limit holds back (§2.4), in one commit with all that is to be remembered of the event. */
import type { SopDispatch, SopStart, SopStore } from '@sluice/sdk'
import { appending } from './audit-log.ts'
import type { Database } from './database.ts'
import { endMessage } from './end-message.ts'
import type { GroupCommit } from './group-commit.ts'
import { hashKey, type KeyTable } from './key-table.ts'
import { idOf, keyOf } from './row-key.ts'

const KNOWN = 'SELECT dispatch_json AS json FROM sop_events WHERE key = ?'
const REMEMBER = 'INSERT INTO sop_events (key, at, dispatch_json, idempotency) VALUES (?, ?, ?, ?)'
const RUNNING = 'SELECT count(*) AS count FROM sop_runs WHERE sop = ? AND ended_at IS NULL'
const ALL_RUNNING = 'SELECT count(*) AS count FROM sop_runs WHERE ended_at IS NULL'
const LAST_END = 'SELECT ended_at AS atMs FROM sop_ends WHERE sop = ?'
// An end that is still to come tells that the clock was set back: nothing cools down for longer than it should.
const CORRECT_END = 'UPDATE sop_ends SET ended_at = ?1 WHERE sop = ?2 AND ended_at > ?1'
const ADD = 'INSERT INTO sop_runs (id, sop, run_json) VALUES (?, ?, ?)'

type About = Parameters<SopStore['start']>[1]

export function createStartRuns(db: Database, writer: GroupCommit, keys: KeyTable): SopStore['start'] {
  return async (starts, about) => {
    const idempotency = about.idempotency ? hashKey(about.idempotency) : null
    try {
      const dispatched = await writer.write(starting(db, starts, about, idempotency))
      if (idempotency !== null) keys.ended(idempotency, null, about.atMs)
      return dispatched
    } catch (error) {
      if (idempotency !== null) keys.release(idempotency)
      throw error
    }
  }
}

function starting(
  db: Database,
  starts: readonly SopStart[],
  { atMs, key: eventKey, inbox }: About,
  idempotency: string | null,
): () => readonly SopDispatch[] {
  const key = eventKey === undefined ? null : keyOf(idOf(eventKey))
  const units = starts.map((start) => startingOne(db, start, atMs))
  return () => {
    const known = key && db.get<{ json: string }>(KNOWN, key)
    const dispatched: readonly SopDispatch[] = known ? JSON.parse(known.json) : units.map((unit) => unit())
    const newKey = known ? null : key
    if (newKey !== null || idempotency !== null) db.run(REMEMBER, newKey, atMs, JSON.stringify(dispatched), idempotency)
    if (inbox !== undefined) endMessage(db, inbox, atMs)
    return dispatched
  }
}

/** Reads the limits inside the unit: another process may start runs, too. */
function startingOne(db: Database, { run, audit, limits, skipped }: SopStart, atMs: number): () => SopDispatch {
  const json = JSON.stringify(run)
  const record = appending(db, audit)
  return () => {
    const reason = heldBack(db, run.sop, limits, atMs)
    if (reason !== undefined) {
      appending(db, [skipped(reason)])()
      return { sop: run.sop, status: 'skipped', reason }
    }
    db.run(ADD, run.id, run.sop, json)
    record()
    return { sop: run.sop, status: 'started', runId: run.id }
  }
}

function heldBack(
  db: Database,
  sop: string,
  { concurrentMax, totalMax, cooldownMs }: SopStart['limits'],
  atMs: number,
): string | undefined {
  if (count(db, RUNNING, sop) >= concurrentMax) return `already running as often as it may (max_concurrent = ${concurrentMax})`
  if (count(db, ALL_RUNNING) >= totalMax) return `as many procedures run as may at once (max_concurrent_total = ${totalMax})`
  const leftMs = cooldownMs > 0 ? coolDownLeft(db, sop, cooldownMs, atMs) : 0
  return leftMs > 0 ? `cooling down for another ${Math.ceil(leftMs / 1000)} s` : undefined
}

function coolDownLeft(db: Database, sop: string, cooldownMs: number, atMs: number): number {
  db.run(CORRECT_END, atMs, sop)
  const endedAtMs = db.get<{ atMs: number }>(LAST_END, sop)?.atMs
  return endedAtMs === undefined ? 0 : endedAtMs + cooldownMs - atMs
}

const count = (db: Database, text: string, ...values: readonly string[]): number => db.get<{ count: number }>(text, ...values)?.count ?? 0
