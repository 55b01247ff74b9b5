/**
 * Starts the runs of an event within their limits, stores runs that wait, and remembers the event, all in one commit. A waiting run is a
 * row of `sop_runs` with the time of its event in `held_at`; it begins when `begin` replaces it.
 */
import {
  AppError,
  judgeStart,
  SOP_RANKS,
  type SopDispatch,
  type SopLimits,
  type SopLoad,
  type SopRun,
  type SopStart,
  type SopStore,
  takenLimit,
} from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { prepareAudit } from './audit-log.ts'
import { hashKey, joinTexts, rowKey } from './hashed-keys.ts'
import type { KeyTable } from './key-table.ts'
import { endMessage } from './message-attempt.ts'
import { fullError, replacedRecord } from './waiting-starts.ts'

const KNOWN = 'SELECT dispatch_json AS json FROM sop_events WHERE key = ?'
const REMEMBER = 'INSERT INTO sop_events (key, at, dispatch_json, idempotency) VALUES (?, ?, ?, ?)'
const COUNTS = 'SELECT status, count(*) AS count FROM sop_runs WHERE sop = ? AND ended_at IS NULL GROUP BY status'
const AT_WORK = "SELECT count(*) AS count FROM sop_runs WHERE status = 'running' AND ended_at IS NULL"
const LAST_END = 'SELECT ended_at AS atMs FROM sop_ends WHERE sop = ?'
// An end in the future means that the clock was set back. It is corrected, so that no cooldown lasts longer than configured.
const CORRECT_END = 'UPDATE sop_ends SET ended_at = ?1 WHERE sop = ?2 AND ended_at > ?1'
const ADD = 'INSERT INTO sop_runs (id, sop, run_json, status, rank, held_at) VALUES (?, ?, ?, ?, ?, ?)'
const WAITING = 'SELECT id, sop, held_at AS sinceMs FROM sop_runs WHERE held_at IS NOT NULL ORDER BY rank DESC, number'
const HELD = 'SELECT number, run_json AS json FROM sop_runs WHERE sop = ? AND held_at IS NOT NULL ORDER BY number'
const RENEW = 'UPDATE sop_runs SET run_json = ?, rank = ?, held_at = ? WHERE number = ?'
// Compares texts: the same run always has the same JSON, because this store wrote it.
const BEGIN = `
  UPDATE sop_runs SET run_json = ?, status = ?, held_at = NULL WHERE id = ? AND run_json = ? AND held_at IS NOT NULL AND ended_at IS NULL`

type About = Parameters<SopStore['start']>[1]
type Unit = () => { readonly dispatch: SopDispatch; readonly isFull?: boolean }

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
  { atMs, key: eventKey, inbox, repeats = false }: About,
  idempotency: string | null,
): () => readonly SopDispatch[] {
  const key = eventKey === undefined ? null : rowKey(joinTexts(eventKey))
  const units = starts.map((start) => prepareStart(db, start, atMs))
  return () => {
    const known = key && db.get<{ json: string }>(KNOWN, key)
    const dispatched: readonly SopDispatch[] = known ? JSON.parse(known.json) : startAll(units, repeats)
    const newKey = known ? null : key
    if (newKey !== null || idempotency !== null) db.run(REMEMBER, newKey, atMs, JSON.stringify(dispatched), idempotency)
    if (inbox !== undefined) endMessage(db, inbox, atMs)
    return dispatched
  }
}

/** Throws, so that nothing is stored, when no procedure takes the event and its sender repeats it. */
function startAll(units: readonly Unit[], repeats: boolean): readonly SopDispatch[] {
  const results = units.map((unit) => unit())
  const refused = repeats ? fullError(results) : undefined
  if (refused) throw refused
  return results.map(({ dispatch }) => dispatch)
}

/** The limits are checked inside the transaction, because another process may start runs, too. */
function prepareStart(db: Database, start: SopStart, atMs: number): Unit {
  const { run, audit, limits, skipped } = start
  const json = JSON.stringify(run)
  const record = prepareAudit(db, audit)
  const add = ({ id, sop, status, priority }: SopRun, text: string, heldAtMs: number | null): void => {
    db.run(ADD, id, sop, text, status, SOP_RANKS[priority], heldAtMs)
  }
  return () => {
    const judged = judgeStart(limits, loadOf(db, run.sop, limits, atMs))
    if (judged.verdict === 'start') {
      add(run, json, null)
      record()
      return { dispatch: { sop: run.sop, status: 'started', runId: run.id } }
    }
    const { reason } = judged
    const waiting = limits.waitingMax > 0 && judged.verdict !== 'skip' ? renewed(db, start, reason, atMs) : undefined
    if (waiting) return { dispatch: waiting }
    if (judged.verdict === 'wait') {
      const held = start.held(reason)
      add(held.run, JSON.stringify(held.run), atMs)
      prepareAudit(db, held.audit)()
      return { dispatch: { sop: run.sop, status: 'waiting', runId: run.id, reason } }
    }
    prepareAudit(db, [skipped(reason)])()
    return { dispatch: { sop: run.sop, status: 'skipped', reason }, isFull: judged.verdict === 'full' }
  }
}

/** Lets the event take the place of the one that waits, if of those only the newest does. */
function renewed(db: Database, { run: { sop, event }, holdsOne, held }: SopStart, reason: string, atMs: number): SopDispatch | undefined {
  if (!holdsOne) return undefined
  const rows = db.all<{ number: number; json: string }>(HELD, sop).map(({ number, json }) => ({ number, run: JSON.parse(json) as SopRun }))
  const before = rows.find(({ run }) => run.event.source === event.source && run.event.topic === event.topic)
  if (!before) return undefined
  const after: SopRun = { ...held(reason).run, id: before.run.id }
  db.run(RENEW, JSON.stringify(after), SOP_RANKS[after.priority], atMs, before.number)
  prepareAudit(db, [replacedRecord(before.run, atMs)])()
  return { sop, status: 'waiting', runId: after.id, reason }
}

function loadOf(db: Database, sop: string, { cooldownMs, totalMax }: SopLimits, atMs: number): SopLoad {
  const counts = new Map(db.all<{ status: SopRun['status']; count: number }>(COUNTS, sop).map(({ status, count }) => [status, count]))
  const total = totalMax > 0 ? (db.get<{ count: number }>(AT_WORK)?.count ?? 0) : 0
  return { counts, total, coolsMs: cooldownMs > 0 ? cooldownLeftMs(db, sop, cooldownMs, atMs) : 0 }
}

function cooldownLeftMs(db: Database, sop: string, cooldownMs: number, atMs: number): number {
  db.run(CORRECT_END, atMs, sop)
  const endedAtMs = db.get<{ atMs: number }>(LAST_END, sop)?.atMs
  return endedAtMs === undefined ? 0 : endedAtMs + cooldownMs - atMs
}

/** The waiting runs of the port. */
export function createWaitingRuns(db: Database, writer: Writer): Pick<SopStore, 'waiting' | 'begin'> {
  return {
    waiting: async () => db.read(() => db.all(WAITING)),
    async begin({ before, after, audit, limits }, atMs) {
      if (before.status !== 'waiting') throw new AppError('internal', `The run ${before.id} does not wait: it is ${before.status}`)
      const [read, written] = [JSON.stringify(before), JSON.stringify(after)]
      const record = prepareAudit(db, audit)
      return writer.write(() => {
        const load = loadOf(db, before.sop, limits, atMs)
        if (takenLimit(limits, load) !== undefined) return { inMs: null }
        if (load.coolsMs > 0) return { inMs: load.coolsMs }
        if (db.run(BEGIN, written, after.status, before.id, read) === 0) return 'changed'
        record()
        return 'begun'
      })
    },
  }
}
