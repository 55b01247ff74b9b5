/**
 * Prepares a database from a backup for its first start. The daemon went on after the backup was made, so work that is unfinished in
 * the backup may have been done since: nothing of it is repeated by itself, and operators decide about it. See docs/guides/backup.md.
 */
import { AppError, type Clock, errorText, type Logger, type StoreRecovered } from '@sluice/sdk'
import { type EndDialect, endUnfinished } from '../cold/end-unfinished.ts'
import { UNSIGNED } from '../cold/row-signing.ts'
import { Database } from '../connection/database.ts'
import { runSteps } from '../connection/run-steps.ts'
import { DIALECT } from '../tables/dialect.ts'
import { migrate } from './migrate.ts'

/** The conditions on the state equal the conditions of the partial indexes. */
const END: EndDialect = {
  replies: "state IN ('queued', 'sending', 'failed') AND state <> 'sent' AND ended_at IS NULL",
  messages: "state IN ('pending', 'running') AND state <> 'done' AND ended_at IS NULL",
  alsoState: [],
}

export interface MarkOptions {
  /** The path of the database, which no other process uses. */
  readonly file: string
  readonly backupAtMs: number
  readonly clock: Clock
  readonly log: Logger
}

/** The rows that operators may want to look at. */
export type Marked = StoreRecovered

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
    const reason = `A backup of ${new Date(backupAtMs).toISOString()} was restored: this may have been done after the backup was made.`
    const marked = mark(db, reason, nowMs)
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    return marked
  } catch (error) {
    if (error instanceof AppError) throw error
    throw new AppError('unavailable', `The database of the backup cannot be used: ${errorText(error)}`, { cause: error })
  } finally {
    db?.close()
  }
}

const mark = (db: Database, reason: string, nowMs: number): StoreRecovered =>
  db.transaction(() => runSteps(db, endUnfinished({ end: END, dialect: DIALECT, signed: UNSIGNED, reason, nowMs })))

function requireSound(db: Database, file: string): void {
  const faults = db.all<{ quick_check: string }>('PRAGMA quick_check(5)').filter((row) => row.quick_check !== 'ok')
  if (faults.length > 0) throw new AppError('unavailable', `${file} is damaged: ${faults.map((row) => row.quick_check).join('; ')}`)
}
