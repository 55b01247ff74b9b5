/**
 * Prepares a database from a backup for its first start. The daemon went on after the backup was made, so work that is unfinished in
 * the backup may have been done since: nothing of it is repeated by itself, and operators decide about it. See docs/guides/backup.md.
 */
import { AppError, type Clock, errorText, type Logger, type NewAudit, type SopRun } from '@sluice/sdk'
import { appendAudit } from '../cold/audit-log.ts'
import { putValue } from '../cold/key-value.ts'
import { UNSIGNED } from '../cold/row-signing.ts'
import { Database } from '../connection/database.ts'
import { rowsOf, runSteps } from '../connection/run-steps.ts'
import { AUDIT } from '../tables/dialect.ts'
import { toBytes } from '../tables/key-bytes.ts'
import { migrate } from './migrate.ts'
import { RESTORED } from './restored-at.ts'

const REPLIES = `
  UPDATE outbox SET state = 'ambiguous', error = ?1, ended_at = ?2, next_at = NULL
  WHERE state IN ('queued', 'sending', 'failed') AND state <> 'sent' AND ended_at IS NULL`
const MESSAGES = `
  UPDATE inbox SET state = 'dead', error = ?1, ended_at = ?2, next_at = NULL
  WHERE state IN ('pending', 'running') AND state <> 'done' AND ended_at IS NULL`
const TURNS = "UPDATE turns SET status = 'failed', error_json = ?1, ended_at = ?2, checkpoint_json = NULL WHERE ended_at IS NULL"
const CANCEL_APPROVALS = `
  UPDATE approvals SET state = 'cancelled', decided_by = 'system', feedback = ?1, decided_at = ?2 WHERE state = 'pending'`
// Nobody is told of a decision that may have been told already.
const SETTLE_APPROVALS = 'UPDATE approvals SET settled_at = ? WHERE settled_at IS NULL'
const RUNS = 'SELECT run_json AS json FROM sop_runs WHERE ended_at IS NULL ORDER BY number'
const END_RUN = 'UPDATE sop_runs SET run_json = ?, status = ?, ended_at = ?, held_at = NULL WHERE id = ?'
const NOTE_END = 'INSERT INTO sop_ends (sop, ended_at) VALUES (?, ?) ON CONFLICT DO UPDATE SET ended_at = excluded.ended_at'
const HAS_KEY = 'SELECT 1 FROM key_values WHERE owner = ? AND key = ?'

export interface MarkOptions {
  /** The path of the database, which no other process uses. */
  readonly file: string
  readonly backupAtMs: number
  readonly clock: Clock
  readonly log: Logger
}

/** The rows that operators may want to look at. */
export interface Marked {
  readonly replies: number
  readonly messages: number
  readonly turns: number
  readonly approvals: number
  readonly runs: number
}

/**
 * Upgrades the database to this release and marks its unfinished work in one commit. Leaves one file without a log. Throws
 * `unavailable` for a database of a newer release or a damaged one.
 */
export function markRestored({ file, backupAtMs, clock, log }: MarkOptions): Marked {
  const nowMs = clock.nowMs()
  let db: Database | undefined
  try {
    db = new Database(file)
    db.makeDurable()
    migrate(db, { file, log, nowMs })
    requireSound(db, file)
    const marked = mark(db, backupAtMs, nowMs)
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    return marked
  } catch (error) {
    if (error instanceof AppError) throw error
    throw new AppError('unavailable', `The database of the backup cannot be used: ${errorText(error)}`, { cause: error })
  } finally {
    db?.close()
  }
}

function requireSound(db: Database, file: string): void {
  const faults = db.all<{ quick_check: string }>('PRAGMA quick_check(5)').filter((row) => row.quick_check !== 'ok')
  if (faults.length > 0) throw new AppError('unavailable', `${file} is damaged: ${faults.map((row) => row.quick_check).join('; ')}`)
}

function mark(db: Database, backupAtMs: number, nowMs: number): Marked {
  const reason = `A backup of ${new Date(backupAtMs).toISOString()} was restored: this may have been done after the backup was made.`
  return db.transaction(() => {
    const setKey = (owner: string, key: string) => rowsOf(db, putValue(UNSIGNED, owner, key, nowMs))
    const runs = cancelRuns(db, reason, nowMs)
    const replies = db.run(REPLIES, reason, nowMs)
    const messages = db.run(MESSAGES, reason, nowMs)
    const approvals = db.run(CANCEL_APPROVALS, reason, nowMs)
    const turns = db.run(TURNS, JSON.stringify({ code: 'unavailable', message: reason }), nowMs)
    db.run(SETTLE_APPROVALS, nowMs)
    // Instants of cron triggers between the backup and now may have started runs.
    if (db.get(HAS_KEY, 'sop', toBytes('cron'))) setKey('sop', 'cron')
    setKey(RESTORED.owner, RESTORED.key)
    return { replies, messages, turns, approvals, runs }
  })
}

function cancelRuns(db: Database, reason: string, nowMs: number): number {
  const runs = db.all<{ json: string }>(RUNS).map(({ json }): SopRun => JSON.parse(json))
  const audit: NewAudit[] = []
  for (const run of runs) {
    // One that had not begun can be replayed.
    const status = run.status === 'waiting' ? 'expired' : 'cancelled'
    const after: SopRun = { ...run, status, gate: null, report: null, endedAtMs: nowMs, reason }
    db.run(END_RUN, JSON.stringify(after), status, nowMs, run.id)
    if (status === 'cancelled') db.run(NOTE_END, run.sop, nowMs)
    audit.push({ kind: `run_${status}`, atMs: nowMs, sop: run.sop, run: run.id, step: null, by: 'engine', reason, detail: {} })
  }
  runSteps(db, appendAudit(AUDIT, audit))
  return runs.length
}
