/**
 * Starts the runs of an event within their limits, stores runs that wait, and remembers the event, all in one commit. A waiting run is a
 * row of `sop_runs` with the time of its event in `held_at`; it begins when `begin` replaces it.
 */
import {
  AppError,
  judgeStart,
  type NewAudit,
  SOP_RANKS,
  type SopDispatch,
  type SopLimits,
  type SopLoad,
  type SopRun,
  type SopStart,
  type SopStore,
  takenLimit,
} from '@sluice/sdk'
import { hashKey, joinTexts, rowKey } from '../tables/hashed-keys.ts'
import type { KeyTable } from '../tables/key-table.ts'
import { appendAudit } from './audit-log.ts'
import { all, type ColdDatabase, type Dialect, first, type Steps, statement } from './cold-database.ts'
import { fullError, replacedRecord } from './waiting-starts.ts'

// Compares texts: the same run always has the same JSON, because this store wrote it.
export const REPLACE = `
  UPDATE sop_runs SET run_json = $1, ended_at = $2, status = $3, held_at = NULL
  WHERE id = $4 AND run_json = $5 AND ended_at IS NULL RETURNING id`
const KNOWN = 'SELECT dispatch_json AS json FROM sop_events WHERE key = $1'
// Two processes may have claimed one key at once: the second one gets what the first one started.
const CLAIMED = 'SELECT dispatch_json AS json FROM sop_events WHERE idempotency = $1 AND at > $2 ORDER BY at DESC LIMIT 1'
const CLAIMED_TOGETHER_MS = 10_000
const REMEMBER = 'INSERT INTO sop_events (key, at, dispatch_json, idempotency) VALUES ($1, $2, $3, $4)'
const COUNTS = 'SELECT status, count(*) AS count FROM sop_runs WHERE sop = $1 AND ended_at IS NULL GROUP BY status'
const AT_WORK = "SELECT count(*) AS count FROM sop_runs WHERE status = 'running' AND ended_at IS NULL"
const LAST_END = 'SELECT ended_at AS "atMs" FROM sop_ends WHERE sop = $1'
// An end in the future means that the clock was set back. It is corrected, so that no cooldown lasts longer than configured.
const CORRECT_END = 'UPDATE sop_ends SET ended_at = $1 WHERE sop = $2 AND ended_at > $1'
const HELD = 'SELECT number, run_json AS json FROM sop_runs WHERE sop = $1 AND held_at IS NOT NULL ORDER BY number'

/** A run, as its row has it. */
export interface RunColumns {
  readonly json: string
}

export const toRun = ({ json }: RunColumns): SopRun => JSON.parse(json)

type About = Parameters<SopStore['start']>[1]
type Outcome = { readonly dispatch: SopDispatch; readonly isFull?: boolean }

/** The parts of the port that start runs, and that let waiting ones begin. */
export function createStart(db: ColdDatabase, keys: KeyTable): Pick<SopStore, 'start' | 'begin'> {
  const { dialect } = db
  return {
    /** Rejects and releases the idempotency key when nothing was stored. */
    async start(starts, about) {
      const idempotency = about.idempotency ? hashKey(about.idempotency) : null
      try {
        const dispatched = await db.transaction(() => startSteps(dialect, starts, about, idempotency))
        if (idempotency !== null) keys.ended(idempotency, null, about.atMs)
        return dispatched
      } catch (error) {
        if (idempotency !== null) keys.release(idempotency)
        throw error
      }
    },
    async begin({ before, after, audit, limits }, atMs) {
      if (before.status !== 'waiting') throw new AppError('internal', `The run ${before.id} does not wait: it is ${before.status}`)
      const [read, written] = [JSON.stringify(before), JSON.stringify(after)]
      return db.transaction(function* () {
        yield dialect.sops.lock
        const load = (yield* readLoads([{ sop: before.sop, limits }], atMs))(before.sop, limits)
        if (takenLimit(limits, load) !== undefined) return { inMs: null }
        if (load.coolsMs > 0) return { inMs: load.coolsMs }
        if (!(yield* first(REPLACE, written, null, after.status, before.id, read))) return 'changed'
        yield* appendAudit(dialect.audit, audit)
        return 'begun'
      })
    },
  }
}

/** Starts the runs, or returns the result of the first delivery. */
function* startSteps(
  dialect: Dialect,
  starts: readonly SopStart[],
  { atMs, key: eventKey, inbox, repeats = false }: About,
  idempotency: string | null,
): Steps<readonly SopDispatch[]> {
  yield dialect.sops.lock
  const key = eventKey === undefined ? null : rowKey(joinTexts(eventKey))
  const claimed = idempotency === null ? undefined : yield* first<RunColumns>(CLAIMED, idempotency, atMs - CLAIMED_TOGETHER_MS)
  if (claimed) return JSON.parse(claimed.json)
  const known = key && (yield* first<RunColumns>(KNOWN, key))
  const dispatched: readonly SopDispatch[] = known ? JSON.parse(known.json) : yield* startAll(dialect, starts, { atMs, repeats })
  const newKey = known ? null : key
  if (newKey !== null || idempotency !== null) yield* all(REMEMBER, newKey, atMs, JSON.stringify(dispatched), idempotency)
  // A message that started nothing is ended by the caller, who tells its sender.
  if (inbox !== undefined && dispatched.some(({ status }) => status !== 'skipped')) yield* dialect.endMessage(inbox, atMs)
  return dispatched
}

/**
 * Starts the runs that no limit prevents and stores runs that wait, in order; each counts the earlier ones. The limits are checked inside
 * the transaction, because another process may start runs, too. Throws, so that nothing is stored, when no procedure takes the event and
 * its sender repeats it.
 */
function* startAll(
  dialect: Dialect,
  starts: readonly SopStart[],
  { atMs, repeats }: { readonly atMs: number; readonly repeats: boolean },
): Steps<readonly SopDispatch[]> {
  const loadOf = yield* readLoads(
    starts.map(({ run: { sop }, limits }) => ({ sop, limits })),
    atMs,
  )
  const { add, renew } = runStatements(dialect)
  const audit: NewAudit[] = []
  const results: Outcome[] = []
  for (const start of starts) results.push(yield* startOne(start))
  const refused = repeats ? fullError(results) : undefined
  if (refused) throw refused
  yield* appendAudit(dialect.audit, audit)
  return results.map(({ dispatch }) => dispatch)

  function* startOne(start: SopStart): Steps<Outcome> {
    const { run, limits, skipped } = start
    const { sop } = run
    const load = loadOf(sop, limits)
    const judged = judgeStart(limits, load)
    function* store(stored: SopRun, records: readonly NewAudit[], heldAtMs: number | null): Steps<void> {
      load.add(stored.status)
      audit.push(...records)
      yield [add(stored, heldAtMs)]
    }
    if (judged.verdict === 'start') {
      yield* store(run, start.audit, null)
      return { dispatch: { sop, status: 'started', runId: run.id } }
    }
    const { reason } = judged
    const before = start.holdsOne && limits.waitingMax > 0 && judged.verdict !== 'skip' ? yield* heldBefore(run) : undefined
    if (before) {
      // The event takes the place of the one that waits: of those only the newest does.
      const after: SopRun = { ...start.held(reason).run, id: before.run.id }
      yield [renew(after, atMs, before.number)]
      audit.push(replacedRecord(before.run, atMs))
      return { dispatch: { sop, status: 'waiting', runId: after.id, reason } }
    }
    if (judged.verdict === 'wait') {
      const held = start.held(reason)
      yield* store(held.run, held.audit, atMs)
      return { dispatch: { sop, status: 'waiting', runId: run.id, reason } }
    }
    audit.push(skipped(reason))
    return { dispatch: { sop, status: 'skipped', reason }, isFull: judged.verdict === 'full' }
  }
}

/** Returns the functions that create the statements which store a run. */
function runStatements({ sops: { columns } }: Dialect) {
  const names = ['run_json', 'rank', 'held_at', ...Object.keys(columns)]
  const valuesOf = (run: SopRun, heldAtMs: number | null) => [
    JSON.stringify(run),
    SOP_RANKS[run.priority],
    heldAtMs,
    ...Object.values(columns).map((read) => read(run)),
  ]
  const after = names.length + 1
  const ADD = `
    INSERT INTO sop_runs (${names.join(', ')}, id, sop, status)
    VALUES (${names.map((_, at) => `$${at + 1}`).join(', ')}, $${after}, $${after + 1}, $${after + 2})`
  const RENEW = `UPDATE sop_runs SET ${names.map((name, at) => `${name} = $${at + 1}`).join(', ')} WHERE number = $${after}`
  return {
    add: (run: SopRun, heldAtMs: number | null) => statement(ADD, ...valuesOf(run, heldAtMs), run.id, run.sop, run.status),
    renew: (run: SopRun, heldAtMs: number, number: number) => statement(RENEW, ...valuesOf(run, heldAtMs), number),
  }
}

/** Returns the waiting run with the source and topic of another. */
function* heldBefore({ sop, event }: SopRun): Steps<{ readonly number: number; readonly run: SopRun } | undefined> {
  const rows = (yield* all<RunColumns & { number: number }>(HELD, sop)).map((row) => ({ number: row.number, run: toRun(row) }))
  return rows.find(({ run }) => run.event.source === event.source && run.event.topic === event.topic)
}

/** The load of one procedure as it was read, with the runs that were added since. */
type CountedLoad = SopLoad & { add(status: SopRun['status']): void }

/** Reads the present runs and the last ends of procedures, which stay as they are until the commit. */
function* readLoads(
  asked: readonly { readonly sop: string; readonly limits: SopLimits }[],
  atMs: number,
): Steps<(sop: string, limits: SopLimits) => CountedLoad> {
  const sops = [...new Set(asked.map(({ sop }) => sop))]
  const rows = yield sops.map((sop) => statement(COUNTS, sop))
  const counts = new Map(
    sops.map((sop, at) => {
      const own = (rows[at] ?? []) as readonly { readonly status: SopRun['status']; readonly count: number }[]
      return [sop, new Map(own.map(({ status, count }) => [status, count]))]
    }),
  )
  let total = asked.some(({ limits }) => limits.totalMax > 0) ? ((yield* first<{ count: number }>(AT_WORK))?.count ?? 0) : 0
  const ends = new Map<string, number>()
  for (const sop of new Set(asked.filter(({ limits }) => limits.cooldownMs > 0).map((one) => one.sop))) {
    const [, [end] = []] = yield [statement(CORRECT_END, atMs, sop), statement(LAST_END, sop)]
    if (end) ends.set(sop, (end as { atMs: number }).atMs)
  }
  return (sop, { cooldownMs }) => {
    const own = counts.get(sop) ?? new Map<SopRun['status'], number>()
    const endedAtMs = cooldownMs > 0 ? ends.get(sop) : undefined
    return {
      counts: own,
      total,
      coolsMs: endedAtMs === undefined ? 0 : endedAtMs + cooldownMs - atMs,
      add(status) {
        own.set(status, (own.get(status) ?? 0) + 1)
        if (status === 'running') total++
      },
    }
  }
}
