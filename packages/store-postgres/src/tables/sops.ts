/** The runs of procedures: stored as JSON, replaced as a whole with optimistic concurrency, and pruned after their end. */
import {
  type NewAudit,
  type OwnedSopStore,
  type ShardRange,
  type SopDispatch,
  type SopRun,
  type SopStart,
  type SopStore,
  shardOf,
} from '@sluice/sdk'
import { hashKey, joinTexts, type KeyTable, rowKey, toAuditRow } from '@sluice/store/shared'
import type { Row as Columns } from '../connection/connection.ts'
import { columnsOf, type Database } from '../connection/database.ts'
import type { Tx } from '../connection/group-commit.ts'
import { shardQuery } from '../connection/shard-reads.ts'
import { appendAudit, readAudit, verifyAudit } from './audit-log.ts'
import { ENDED_WITHOUT_TURN } from './message-attempt.ts'

// Compares texts: the same run always has the same JSON, because this store wrote it.
const REPLACE = `
  UPDATE sop_runs SET run_json = $1, ended_at = $2, status = $3 WHERE id = $4 AND run_json = $5 AND ended_at IS NULL RETURNING id`
const NOTE_END = 'INSERT INTO sop_ends (sop, ended_at) VALUES ($1, $2) ON CONFLICT (sop) DO UPDATE SET ended_at = excluded.ended_at'
const GET = 'SELECT run_json AS json FROM sop_runs WHERE id = $1'
const NUMBER = 'SELECT number FROM sop_runs WHERE id = $1'
const ACTIVE = 'SELECT sop, count(*) AS count FROM sop_runs WHERE ended_at IS NULL GROUP BY sop'
const UNFINISHED = shardQuery(
  (shard) => `
  SELECT run_json AS json, shard FROM sop_runs WHERE ended_at IS NULL AND ${shard} AND number > $3 ORDER BY number LIMIT $4`,
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
  INSERT INTO sop_runs (id, shard, sop, status, run_json, starter)
  SELECT id, shard, sop, status, run_json, starter
  FROM unnest($1::text[], $2::smallint[], $3::text[], $4::text[], $5::text[], $6::text[])
    WITH ORDINALITY AS run (id, shard, sop, status, run_json, starter, place)
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
        if (after.endedAtMs !== null) await tx.all(NOTE_END, after.sop, after.endedAtMs)
        await appendAudit(tx, audit)
        return true
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
  { atMs, key: eventKey, inbox }: Parameters<SopStore['start']>[1],
  idempotency: string | null,
): Promise<readonly SopDispatch[]> {
  await tx.all(LOCK)
  const key = eventKey === undefined ? null : rowKey(joinTexts(eventKey))
  const claimed = idempotency === null ? undefined : await tx.get<Row>(CLAIMED, idempotency, atMs - CLAIMED_TOGETHER_MS)
  if (claimed) return JSON.parse(claimed.json)
  const known = key && (await tx.get<Row>(KNOWN, key))
  const dispatched: readonly SopDispatch[] = known ? JSON.parse(known.json) : await startAll(tx, starts, atMs)
  const newKey = known ? null : key
  if (newKey !== null || idempotency !== null) await tx.all(REMEMBER, newKey, atMs, JSON.stringify(dispatched), idempotency)
  if (inbox !== undefined) await tx.all(END_INBOX, inbox, atMs)
  return dispatched
}

/** Starts the runs that no limit prevents, in order; each counts the earlier ones. The lock keeps the counts as they were read. */
async function startAll(tx: Tx, starts: readonly SopStart[], atMs: number): Promise<readonly SopDispatch[]> {
  const sops = [...new Set(starts.map(({ run }) => run.sop))]
  const running = new Map((await tx.all<{ sop: string; count: number }>(ACTIVE)).map(({ sop, count }) => [sop, count]))
  let total = running.values().reduce((sum, count) => sum + count, 0)
  await tx.all(CORRECT_ENDS, atMs, sops)
  const ends = new Map((await tx.all<{ sop: string; at: number }>(LAST_ENDS, sops)).map(({ sop, at }) => [sop, at]))
  const audit: NewAudit[] = []
  const runs: SopRun[] = []
  const dispatched = starts.map((start): SopDispatch => {
    const { run, limits } = start
    const own = running.get(run.sop) ?? 0
    const reason = reachedLimit(limits, {
      own,
      total,
      coolsUntilMs: (ends.get(run.sop) ?? Number.NEGATIVE_INFINITY) + limits.cooldownMs,
      atMs,
    })
    if (reason !== undefined) {
      audit.push(start.skipped(reason))
      return { sop: run.sop, status: 'skipped', reason }
    }
    running.set(run.sop, own + 1)
    total++
    runs.push(run)
    audit.push(...start.audit)
    return { sop: run.sop, status: 'started', runId: run.id }
  })
  await tx.all(
    ADD,
    ...columnsOf(
      runs,
      ({ id }) => id,
      ({ id }) => shardOf(id),
      ({ sop }) => sop,
      ({ status }) => status,
      (run) => JSON.stringify(run),
      ({ event }) => starterColumn(event.starter),
    ),
  )
  await appendAudit(tx, audit)
  return dispatched
}

interface Load {
  readonly own: number
  readonly total: number
  readonly coolsUntilMs: number
  readonly atMs: number
}

/** Returns the limit that prevents a start, as a reason for the audit log; undefined when there is none. */
function reachedLimit(
  { concurrentMax, totalMax, cooldownMs }: SopStart['limits'],
  { own, total, coolsUntilMs, atMs }: Load,
): string | undefined {
  if (own >= concurrentMax) return `too many runs of this procedure (max_concurrent = ${concurrentMax})`
  if (total >= totalMax) return `too many runs of all procedures (max_concurrent_total = ${totalMax})`
  const leftMs = cooldownMs > 0 ? coolsUntilMs - atMs : 0
  return leftMs > 0 ? `cooling down for another ${Math.ceil(leftMs / 1000)} s` : undefined
}
