/** Forgets old runs of procedures and old events, a few in each transaction; records of the audit log are for ever. */
import type { SopStore } from '@sluice/sdk'
import type { Database } from './database.ts'
import type { GroupCommit } from './group-commit.ts'
import { inSlices } from './in-slices.ts'

/** The oldest end that is kept. */
const KEPT_SINCE = `
  SELECT ended_at AS atMs, number FROM sop_runs WHERE ended_at IS NOT NULL ORDER BY ended_at DESC, number DESC LIMIT 1 OFFSET ?`
const DROP_RUNS = `
  DELETE FROM sop_runs
  WHERE number IN (
    SELECT number FROM sop_runs WHERE ended_at <= ?1 AND (ended_at, number) < (?1, ?2) ORDER BY ended_at, number LIMIT ?3)`
const DROP_EVENTS = 'DELETE FROM sop_events WHERE number IN (SELECT number FROM sop_events WHERE at < ? ORDER BY at LIMIT ?)'

interface Kept {
  readonly atMs: number
  readonly number: number
}

export async function pruneRuns(
  db: Database,
  writer: GroupCommit,
  { finishedMax, keysBeforeMs }: Parameters<SopStore['prune']>[0],
): Promise<number> {
  const kept = finishedMax > 0 ? db.read(() => db.get<Kept>(KEPT_SINCE, finishedMax - 1)) : undefined
  const runs = kept ? await inSlices(writer, Number.MAX_SAFE_INTEGER, (slice) => db.run(DROP_RUNS, kept.atMs, kept.number, slice)) : 0
  return runs + (await inSlices(writer, Number.MAX_SAFE_INTEGER, (slice) => db.run(DROP_EVENTS, keysBeforeMs, slice)))
}
