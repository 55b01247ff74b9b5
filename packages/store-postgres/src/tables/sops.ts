/** The runs of procedures: stored as JSON, replaced as a whole with optimistic concurrency, and pruned after their end. */
import {
  AppError,
  judgeStart,
  type NewAudit,
  type OwnedSopStore,
  type ShardRange,
  SOP_RANKS,
  type SopDispatch,
  type SopLimits,
  type SopLoad,
  type SopRun,
  type SopStart,
  type SopStore,
  shardOf,
  takenLimit,
  type WaitingSopRun,
} from '@sluice/sdk'
import { fullError, hashKey, joinTexts, type KeyTable, replacedRecord, rowKey, toAuditRow } from '@sluice/store/shared'
import type { Row as Columns } from '../connection/connection.ts'
import { columnsOf, type Database } from '../connection/database.ts'
import type { Tx } from '../connection/group-commit.ts'
import { shardQuery } from '../connection/shard-reads.ts'
import { appendAudit, readAudit, verifyAudit } from './audit-log.ts'
import { ENDED_WITHOUT_TURN } from './message-attempt.ts'

// Compares texts: the same run always has the same JSON, because this store wrote it.
const REPLACE = `
  UPDATE sop_runs SET run_json = $1, ended_at = $2, status = $3, held_at = NULL
  WHERE id = $4 AND run_json = $5 AND ended_at IS NULL RETURNING id`
const NOTE_END = 'INSERT INTO sop_ends (sop, ended_at) VALUES ($1, $2) ON CONFLICT (sop) DO UPDATE SET ended_at = excluded.ended_at'
const GET = 'SELECT run_json AS json FROM sop_runs WHERE id = $1'
const NUMBER = 'SELECT number FROM sop_runs WHERE id = $1'
const ACTIVE = "SELECT sop, count(*) AS count FROM sop_runs WHERE ended_at IS NULL AND status <> 'waiting' GROUP BY sop"
const COUNTS = `
  SELECT sop, status, count(*) AS count FROM sop_runs WHERE sop = ANY ($1::text[]) AND ended_at IS NULL GROUP BY sop, status`
const AT_WORK = "SELECT count(*) AS count FROM sop_runs WHERE status = 'running' AND ended_at IS NULL"
const WAITING = 'SELECT id, sop, held_at AS "sinceMs" FROM sop_runs WHERE held_at IS NOT NULL ORDER BY rank DESC, number'
const HELD = 'SELECT number, run_json AS json FROM sop_runs WHERE sop = $1 AND held_at IS NOT NULL ORDER BY number'
const RENEW = 'UPDATE sop_runs SET run_json = $1, rank = $2, held_at = $3, starter = $4 WHERE number = $5'
const UNFINISHED = shardQuery(
  (shard) => `
  SELECT run_json AS json, shard FROM sop_runs WHERE ended_at IS NULL AND held_at IS NULL AND ${shard} AND number > $3 ORDER BY number LIMIT $4`,
)

/** The end of the oldest run that is kept. */
const KEPT_SINCE = `
  SELECT ended_at AS at, number FROM sop_runs WHERE ended_at IS NOT NULL ORDER BY ended_at DESC, number DESC LIMIT 1 OFFSET $1`
const DROP_RUNS = `
  DELETE FROM sop_runs WHERE number IN (
    SELECT number FROM sop_runs WHERE ended_at IS NOT NULL AND (ended_at, number) < ($1, $2) ORDER BY ended_at, number LIMIT $3)
  RETURNING number`
const DROP_EVENTS =
  'DELETE FROM sop_events WHERE number IN (SELECT number FROM sop_events WHERE at < $1 ORDER BY at LIMIT $2) RETURNING number'

// The limits count runs of all processes: starts take place one after the other.
const LOCK = 'SELECT pg_advisory_xact_lock(7351, 0)'
const KNOWN = 'SELECT dispatch_json AS json FROM sop_events WHERE key = $1'
// Two processes may have claimed one key at once: the second one gets what the first one started.
const CLAIMED = 'SELECT dispatch_json AS json FROM sop_events WHERE idempotency = $1 AND at > $2 ORDER BY at DESC LIMIT 1'
const CLAIMED_TOGETHER_MS = 10_000
const REMEMBER = 'INSERT INTO sop_events (key, at, dispatch_json, idempotency) VALUES ($1, $2, $3, $4)'
const LAST_ENDS = 'SELECT sop, ended_at AS at FROM sop_ends WHERE sop = ANY ($1::text[])'
// An end in the future means that the clock was set back. It is corrected, so that no cooldown lasts longer than configured.
const CORRECT_ENDS = 'UPDATE sop_ends SET ended_at = $1 WHERE sop = ANY ($2::text[]) AND ended_at > $1'
const ADD = `
  INSERT INTO sop_runs (id, shard, sop, status, run_json, starter, rank, held_at)
  SELECT id, shard, sop, status, run_json, starter, rank, held_at
  FROM unnest($1::text[], $2::smallint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::smallint[], $8::float8[])
    WITH ORDINALITY AS run (id, shard, sop, status, run_json, starter, rank, held_at, place)
  ORDER BY place`
const END_INBOX = `WITH ${ENDED_WITHOUT_TURN} SELECT number FROM ended`

interface Row {
  readonly json: string
}

/** A text of PostgreSQL has no NUL and no half of a pair, which its JSON spells out. */
const starterColumn = (starter: string | undefined): string | null => (starter === undefined ? null : JSON.stringify(starter))

const toRun = ({ json }: Row): SopRun => JSON.parse(json)

/** The procedure store of the port. `keys` are the idempotency keys that a start uses up. */
export function createSops(db: Database, keys: KeyTable): SopStore {
  const { writer } = db
  return {
    async start(starts, about) {
      const idempotency = about.idempotency ? hashKey(about.idempotency) : null
      try {
        const dispatched = await writer.transaction((tx) => startIn(tx, starts, about, idempotency))
        if (idempotency !== null) keys.ended(idempotency, null, about.atMs)
        return dispatched
      } catch (error) {
        if (idempotency !== null) keys.release(idempotency)
        throw error
      }
    },
    advance(before, after, audit) {
      const [read, written] = [JSON.stringify(before), JSON.stringify(after)]
      return writer.transaction(async (tx) => {
        if (!(await tx.get(REPLACE, written, after.endedAtMs, after.status, before.id, read))) return false
        if (after.endedAtMs !== null && before.status !== 'waiting') await tx.all(NOTE_END, after.sop, after.endedAtMs)
        await appendAudit(tx, audit)
        return true
      })
    },
    waiting: () => db.all<WaitingSopRun & Columns>(WAITING),
    begin({ before, after, audit, limits }, atMs) {
      if (before.status !== 'waiting') throw new AppError('internal', `The run ${before.id} does not wait: it is ${before.status}`)
      const [read, written] = [JSON.stringify(before), JSON.stringify(after)]
      return writer.transaction(async (tx) => {
        await tx.all(LOCK)
        const load = (await readLoad(tx, [{ sop: before.sop, limits }], atMs))(before.sop, limits)
        if (takenLimit(limits, load) !== undefined) return { inMs: null }
        if (load.coolsMs > 0) return { inMs: load.coolsMs }
        if (!(await tx.get(REPLACE, written, null, after.status, before.id, read))) return 'changed'
        await appendAudit(tx, audit)
        return 'begun'
      })
    },
    record: (audit) => writer.transaction((tx) => appendAudit(tx, audit)),
    async get(runId) {
      const row = await db.get<Row>(GET, runId)
      return row && toRun(row)
    },
    async runs({ limit, sop, active, status, before, starter }) {
      const end = before === undefined ? Number.MAX_SAFE_INTEGER : await numberOf(db, before)
      if (end === undefined) return []
      const filters = { sop, status, starter: starterColumn(starter) }
      const named = Object.entries(filters).flatMap(([column, value]) => (value === null || value === undefined ? [] : [{ column, value }]))
      const conditions = [
        'number < $1',
        ...(active === undefined ? [] : [active ? 'ended_at IS NULL' : 'ended_at IS NOT NULL']),
        ...named.map(({ column }, at) => `${column} = $${at + 3}`),
      ]
      const text = `SELECT run_json AS json FROM sop_runs WHERE ${conditions.join(' AND ')} ORDER BY number DESC LIMIT $2`
      return (await db.all<Row>(text, end, limit, ...named.map(({ value }) => value))).map(toRun)
    },
    activeCounts: async () => new Map((await db.all<{ sop: string; count: number }>(ACTIVE)).map(({ sop, count }) => [sop, count])),
    audit: async (filter) => (await readAudit(db, filter)).map(toAuditRow),
    verify: () => verifyAudit(db),
    async prune({ finishedMax, keysBeforeMs }) {
      const kept = finishedMax > 0 ? await db.get<{ at: number; number: number }>(KEPT_SINCE, finishedMax - 1) : undefined
      const runs = kept ? await writer.dropInSlices(Number.MAX_SAFE_INTEGER, DROP_RUNS, kept.at, kept.number) : 0
      return runs + (await writer.dropInSlices(Number.MAX_SAFE_INTEGER, DROP_EVENTS, keysBeforeMs))
    },
  }
}

export function ownedSops(db: Database, shards: ShardRange | null): Pick<OwnedSopStore, 'unfinished'> {
  return {
    async unfinished({ after, limit }) {
      const start = after === null ? 0 : await numberOf(db, after)
      if (start === undefined || !shards) return []
      return (await db.shards.all<Row & Columns>(UNFINISHED, shards, limit, start, limit)).map(toRun)
    },
  }
}

const numberOf = async (db: Database, id: string): Promise<number | undefined> => (await db.get<{ number: number }>(NUMBER, id))?.number

/** Part of a transaction: starts the runs, or returns the result of the first delivery. */
async function startIn(
  tx: Tx,
  starts: readonly SopStart[],
  { atMs, key: eventKey, inbox, repeats = false }: Parameters<SopStore['start']>[1],
  idempotency: string | null,
): Promise<readonly SopDispatch[]> {
  await tx.all(LOCK)
  const key = eventKey === undefined ? null : rowKey(joinTexts(eventKey))
  const claimed = idempotency === null ? undefined : await tx.get<Row>(CLAIMED, idempotency, atMs - CLAIMED_TOGETHER_MS)
  if (claimed) return JSON.parse(claimed.json)
  const known = key && (await tx.get<Row>(KNOWN, key))
  const dispatched: readonly SopDispatch[] = known ? JSON.parse(known.json) : await startAll(tx, starts, { atMs, repeats })
  const newKey = known ? null : key
  if (newKey !== null || idempotency !== null) await tx.all(REMEMBER, newKey, atMs, JSON.stringify(dispatched), idempotency)
  if (inbox !== undefined) await tx.all(END_INBOX, inbox, atMs)
  return dispatched
}

/**
 * Starts the runs that no limit prevents and stores runs that wait, in order; each counts the earlier ones. The lock keeps the counts as
 * they were read. Throws, so that nothing is stored, when no procedure takes the event and its sender repeats it.
 */
async function startAll(
  tx: Tx,
  starts: readonly SopStart[],
  { atMs, repeats }: { readonly atMs: number; readonly repeats: boolean },
): Promise<readonly SopDispatch[]> {
  const loadOf = await readLoad(
    tx,
    starts.map(({ run: { sop }, limits }) => ({ sop, limits })),
    atMs,
  )
  const audit: NewAudit[] = []
  const added: { readonly run: SopRun; readonly heldAtMs: number | null }[] = []
  const startOne = async (start: SopStart): Promise<{ dispatch: SopDispatch; isFull?: boolean }> => {
    const { run, limits, skipped } = start
    const { sop } = run
    const load = loadOf(sop, limits)
    const judged = judgeStart(limits, load)
    const add = (stored: SopRun, records: readonly NewAudit[], heldAtMs: number | null): void => {
      load.add(stored.status)
      added.push({ run: stored, heldAtMs })
      audit.push(...records)
    }
    if (judged.verdict === 'start') {
      add(run, start.audit, null)
      return { dispatch: { sop, status: 'started', runId: run.id } }
    }
    const { reason } = judged
    const before = start.holdsOne && limits.waitingMax > 0 && judged.verdict !== 'skip' ? await heldBefore(tx, run) : undefined
    if (before) {
      const after: SopRun = { ...start.held(reason).run, id: before.run.id }
      const starter = starterColumn(after.event.starter)
      await tx.all(RENEW, JSON.stringify(after), SOP_RANKS[after.priority], atMs, starter, before.number)
      audit.push(replacedRecord(before.run, atMs))
      return { dispatch: { sop, status: 'waiting', runId: after.id, reason } }
    }
    if (judged.verdict === 'wait') {
      const held = start.held(reason)
      add(held.run, held.audit, atMs)
      return { dispatch: { sop, status: 'waiting', runId: run.id, reason } }
    }
    audit.push(skipped(reason))
    return { dispatch: { sop, status: 'skipped', reason }, isFull: judged.verdict === 'full' }
  }
  const results: Awaited<ReturnType<typeof startOne>>[] = []
  for (const start of starts) results.push(await startOne(start))
  const refused = repeats ? fullError(results) : undefined
  if (refused) throw refused
  await tx.all(
    ADD,
    ...columnsOf(
      added,
      ({ run }) => run.id,
      ({ run }) => shardOf(run.id),
      ({ run }) => run.sop,
      ({ run }) => run.status,
      ({ run }) => JSON.stringify(run),
      ({ run }) => starterColumn(run.event.starter),
      ({ run }) => SOP_RANKS[run.priority],
      ({ heldAtMs }) => heldAtMs,
    ),
  )
  await appendAudit(tx, audit)
  return results.map(({ dispatch }) => dispatch)
}

/** Returns the waiting run with the source and topic of another. */
async function heldBefore(tx: Tx, { sop, event }: SopRun): Promise<{ readonly number: number; readonly run: SopRun } | undefined> {
  const rows = (await tx.all<Row & { number: number }>(HELD, sop)).map((row) => ({ number: row.number, run: toRun(row) }))
  return rows.find(({ run }) => run.event.source === event.source && run.event.topic === event.topic)
}

/** The load of one procedure as it was read, with the runs that were added since. */
type CountedLoad = SopLoad & { add(status: SopRun['status']): void }

/** Reads the present runs and the last ends of procedures. The lock keeps them as they are until the commit. */
async function readLoad(
  tx: Tx,
  asked: readonly { readonly sop: string; readonly limits: SopLimits }[],
  atMs: number,
): Promise<(sop: string, limits: SopLimits) => CountedLoad> {
  const sops = [...new Set(asked.map(({ sop }) => sop))]
  const counts = new Map(sops.map((sop) => [sop, new Map<SopRun['status'], number>()]))
  for (const { sop, status, count } of await tx.all<{ sop: string; status: SopRun['status']; count: number }>(COUNTS, sops))
    counts.get(sop)?.set(status, count)
  let total = asked.some(({ limits }) => limits.totalMax > 0) ? ((await tx.get<{ count: number }>(AT_WORK))?.count ?? 0) : 0
  await tx.all(CORRECT_ENDS, atMs, sops)
  const ends = new Map((await tx.all<{ sop: string; at: number }>(LAST_ENDS, sops)).map(({ sop, at }) => [sop, at]))
  return (sop, { cooldownMs }) => {
    const own = counts.get(sop) ?? new Map<SopRun['status'], number>()
    const coolsMs = cooldownMs > 0 ? (ends.get(sop) ?? Number.NEGATIVE_INFINITY) + cooldownMs - atMs : 0
    return {
      counts: own,
      total,
      coolsMs,
      add(status) {
        own.set(status, (own.get(status) ?? 0) + 1)
        if (status === 'running') total++
      },
    }
  }
}
