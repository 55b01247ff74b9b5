/** The runs of procedures: stored as JSON, replaced as a whole with optimistic concurrency, and pruned after their end. */
import { SOP_ENDED, type SopRun, type SopStore } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { prepareAudit, readAudit, toAuditRow } from './audit-log.ts'
import type { KeyTable } from './key-table.ts'
import { createStartRuns, createWaitingRuns } from './start-runs.ts'
import { verifyAudit } from './verify-audit.ts'

// Compares texts: the same run always has the same JSON, because this store wrote it.
const REPLACE = `
  UPDATE sop_runs SET run_json = ?, status = ?, ended_at = ?, held_at = NULL WHERE id = ? AND run_json = ? AND ended_at IS NULL`
const NOTE_END = 'INSERT INTO sop_ends (sop, ended_at) VALUES (?, ?) ON CONFLICT DO UPDATE SET ended_at = excluded.ended_at'
const GET = 'SELECT run_json AS json FROM sop_runs WHERE id = ?'
const NUMBER = 'SELECT number FROM sop_runs WHERE id = ?'
const ACTIVE = "SELECT sop, count(*) AS count FROM sop_runs WHERE ended_at IS NULL AND status <> 'waiting' GROUP BY sop"

/** The end of the oldest run that is kept. */
const KEPT_SINCE = `
  SELECT ended_at AS atMs, number FROM sop_runs WHERE ended_at IS NOT NULL ORDER BY ended_at DESC, number DESC LIMIT 1 OFFSET ?`
const DROP_RUNS = `
  DELETE FROM sop_runs
  WHERE number IN (
    SELECT number FROM sop_runs WHERE ended_at <= ?1 AND (ended_at, number) < (?1, ?2) ORDER BY ended_at, number LIMIT ?3)`
const DROP_EVENTS = 'DELETE FROM sop_events WHERE number IN (SELECT number FROM sop_events WHERE at < ? ORDER BY at LIMIT ?)'

interface Row {
  readonly json: string
}

const toRun = ({ json }: Row): SopRun => JSON.parse(json)

/** The procedure store of the port. `keys` are the idempotency keys that a start uses up. */
export function createSops(db: Database, writer: Writer, keys: KeyTable): SopStore {
  const numberOf = (id: string): number | undefined => db.get<{ number: number }>(NUMBER, id)?.number
  return {
    start: createStartRuns(db, writer, keys),
    ...createWaitingRuns(db, writer),
    async advance(before, after, audit) {
      const [read, written] = [JSON.stringify(before), JSON.stringify(after)]
      const record = prepareAudit(db, audit)
      return writer.write(() => {
        if (db.run(REPLACE, written, after.status, after.endedAtMs, before.id, read) === 0) return false
        if (after.endedAtMs !== null && before.status !== 'waiting') db.run(NOTE_END, after.sop, after.endedAtMs)
        record()
        return true
      })
    },
    async record(audit) {
      const record = prepareAudit(db, audit)
      await writer.write(record)
    },
    async get(runId) {
      const row = db.read(() => db.get<Row>(GET, runId))
      return row && toRun(row)
    },
    async runs({ limit, sop, active, status, before, starter }) {
      const end = before === undefined ? Number.MAX_SAFE_INTEGER : db.read(() => numberOf(before))
      if (end === undefined) return []
      // A list of ended runs in one of these states reads an index.
      const isEnded = status === undefined ? undefined : SOP_ENDED.includes(status)
      if (isEnded !== undefined && active === isEnded) return []
      // Compares the JSON of the member: SQLite does not decode every text of JavaScript.
      const named = [sop, status, starter === undefined ? undefined : JSON.stringify(starter)].filter((value) => value !== undefined)
      const isActive = isEnded === undefined ? active : !isEnded
      return (await db.page<Row>(listQuery({ sop, status, starter }, isActive), ...named, end, limit)).map(toRun)
    },
    async activeCounts() {
      return new Map(db.read(() => db.all<{ sop: string; count: number }>(ACTIVE)).map(({ sop, count }) => [sop, count]))
    },
    audit: async (filter) => (await readAudit(db, filter)).map(toAuditRow),
    verify: () => verifyAudit(db),
    prune: (limits) => pruneRuns(db, writer, limits),
  }
}

type Filter = Readonly<Record<'sop' | 'status' | 'starter', string | undefined>>

function listQuery({ sop, status, starter }: Filter, active: boolean | undefined): string {
  const state = active === undefined ? '' : active ? 'ended_at IS NULL AND ' : 'ended_at IS NOT NULL AND '
  const named = [
    ...(sop === undefined ? [] : ['sop = ? AND ']),
    ...(status === undefined ? [] : ['status = ? AND ']),
    ...(starter === undefined ? [] : ["run_json -> '$.event.starter' = ? AND "]),
  ].join('')
  return `SELECT run_json AS json FROM sop_runs WHERE ${state}${named}number < ? ORDER BY number DESC LIMIT ?`
}

/** Drops old runs and event keys in small transactions. Audit records are kept for ever. */
async function pruneRuns(db: Database, writer: Writer, { finishedMax, keysBeforeMs }: Parameters<SopStore['prune']>[0]): Promise<number> {
  const kept = finishedMax > 0 ? db.read(() => db.get<{ atMs: number; number: number }>(KEPT_SINCE, finishedMax - 1)) : undefined
  const runs = kept ? await writer.dropInSlices(Number.MAX_SAFE_INTEGER, (rows) => db.run(DROP_RUNS, kept.atMs, kept.number, rows)) : 0
  return runs + (await writer.dropInSlices(Number.MAX_SAFE_INTEGER, (rows) => db.run(DROP_EVENTS, keysBeforeMs, rows)))
}
