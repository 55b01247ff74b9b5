/** The runs of procedures: stored as JSON, replaced as a whole with optimistic concurrency, and pruned after their end. */
import { SOP_ENDED, type SopStore, type WaitingSopRun } from '@sluice/sdk'
import type { KeyTable } from '../tables/key-table.ts'
import { appendAudit, readAudit, toAuditRow } from './audit-log.ts'
import { all, type ColdDatabase, conditionsOf, first } from './cold-database.ts'
import { createStart, REPLACE, type RunColumns, toRun } from './start-runs.ts'
import { verifyAudit } from './verify-audit.ts'

export const NOTE_END = 'INSERT INTO sop_ends (sop, ended_at) VALUES ($1, $2) ON CONFLICT (sop) DO UPDATE SET ended_at = excluded.ended_at'
const GET = 'SELECT run_json AS json FROM sop_runs WHERE id = $1'
const NUMBER = 'SELECT number FROM sop_runs WHERE id = $1'
const ACTIVE = "SELECT sop, count(*) AS count FROM sop_runs WHERE ended_at IS NULL AND status <> 'waiting' GROUP BY sop"
const WAITING = 'SELECT id, sop, held_at AS "sinceMs" FROM sop_runs WHERE held_at IS NOT NULL ORDER BY rank DESC, number'
/** The end of the oldest run that is kept. */
const KEPT_SINCE = `
  SELECT ended_at AS "atMs", number FROM sop_runs WHERE ended_at IS NOT NULL ORDER BY ended_at DESC, number DESC LIMIT 1 OFFSET $1`
const DROP_RUNS = `
  DELETE FROM sop_runs WHERE number IN (
    SELECT number FROM sop_runs WHERE ended_at <= $1 AND (ended_at, number) < ($1, $2) ORDER BY ended_at, number LIMIT $3)
  RETURNING number`
const DROP_EVENTS =
  'DELETE FROM sop_events WHERE number IN (SELECT number FROM sop_events WHERE at < $1 ORDER BY at LIMIT $2) RETURNING number'

/** The procedure store of the port. `keys` are the idempotency keys that a start uses up. */
export function createSops(db: ColdDatabase, keys: KeyTable): SopStore {
  const { dialect } = db
  return {
    ...createStart(db, keys),
    waiting: () => db.all<WaitingSopRun>(WAITING),
    advance(before, after, audit, news) {
      const [read, written] = [JSON.stringify(before), JSON.stringify(after)]
      return db.transaction(function* () {
        if (!(yield* first(REPLACE, written, after.endedAtMs, after.status, before.id, read))) return false
        if (after.endedAtMs !== null && before.status !== 'waiting') yield* all(NOTE_END, after.sop, after.endedAtMs)
        yield* appendAudit(dialect.audit, audit)
        return news ? yield* dialect.queueNews(news) : []
      })
    },
    record: (audit) => db.transaction(() => appendAudit(dialect.audit, audit)),
    async get(runId) {
      const row = await db.get<RunColumns>(GET, runId)
      return row && toRun(row)
    },
    async runs({ limit, sop, active, status, before, starter }) {
      const end = before === undefined ? Number.MAX_SAFE_INTEGER : (await db.get<{ number: number }>(NUMBER, before))?.number
      if (end === undefined) return []
      // A list of ended runs in one of these states reads an index.
      const isEnded = status === undefined ? undefined : SOP_ENDED.includes(status)
      if (isEnded !== undefined && active === isEnded) return []
      const isActive = isEnded === undefined ? active : !isEnded
      // Compares the JSON of the member: neither database holds every text of JavaScript.
      const named = conditionsOf({ sop, status, [dialect.sops.starter]: starter === undefined ? undefined : JSON.stringify(starter) }, 3)
      const conditions = [
        ...(isActive === undefined ? [] : [isActive ? 'ended_at IS NULL' : 'ended_at IS NOT NULL']),
        ...named.conditions,
        'number < $1',
      ]
      const text = `SELECT run_json AS json FROM sop_runs WHERE ${conditions.join(' AND ')} ORDER BY number DESC LIMIT $2`
      return (await db.all<RunColumns>(text, end, limit, ...named.values)).map(toRun)
    },
    activeCounts: async () => new Map((await db.all<{ sop: string; count: number }>(ACTIVE)).map(({ sop, count }) => [sop, count])),
    audit: async (filter) => (await readAudit(db, filter)).map(toAuditRow),
    verify: () => verifyAudit(db),
    // Audit records are kept for ever.
    async prune({ finishedMax, keysBeforeMs }) {
      const kept = finishedMax > 0 ? await db.get<{ atMs: number; number: number }>(KEPT_SINCE, finishedMax - 1) : undefined
      const runs = kept ? await db.dropInSlices(Number.MAX_SAFE_INTEGER, DROP_RUNS, kept.atMs, kept.number) : 0
      return runs + (await db.dropInSlices(Number.MAX_SAFE_INTEGER, DROP_EVENTS, keysBeforeMs))
    },
  }
}
