/** Migrates a file to the schema of this release. */
import { AppError, type Logger } from '@sluice/sdk'
import { copyBeforeUpgrade, dropEarlierCopies, freeBytes } from '../connection/copy-before-upgrade.ts'
import type { Database } from '../connection/database.ts'
import { storageFault } from '../connection/storage-error.ts'
import { BASE } from './base.ts'
import { MIGRATIONS } from './schema.ts'

const NOTE_UPGRADE = 'INSERT INTO upgrades (at, from_schema) VALUES (?, ?)'
/** The size of the pages in use. */
const LIVE_BYTES = `
  SELECT (page_count - freelist_count) * page_size AS bytes
  FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`
const INCREMENTAL = 2

export interface MigrateOptions {
  readonly file: string
  readonly log: Logger
  readonly nowMs: number
  /** Locks out daemons during the upgrade; throws if one runs. Absent: the caller holds the lock. */
  readonly lock?: () => { release(): void }
  /** Returns the free bytes of a folder's file system; for tests. */
  readonly free?: (folder: string) => number
}

/**
 * Runs the missing steps in one transaction, so that a crash leaves either the old schema or the new one. A file of an earlier
 * release is copied first. Two processes may call this at the same time. Throws `data_newer` for a file of a newer release, and
 * `unavailable` when the disk has no room for the copy.
 */
export function migrate(db: Database, options: MigrateOptions): void {
  const from = versionOf(db)
  if (from === MIGRATIONS.length) return
  if (from > MIGRATIONS.length) {
    throw new AppError(
      'data_newer',
      `${options.file} was written by a newer release (schema ${from}; this release supports up to ${MIGRATIONS.length}). Run that release, or move the file away.`,
    )
  }
  if (from === 0) runSteps(db)
  else upgradeLocked(db, options)
}

function upgradeLocked(db: Database, options: MigrateOptions): void {
  const lock = options.lock?.()
  try {
    upgrade(db, options)
  } finally {
    lock?.release()
  }
}

function upgrade(db: Database, { file, log, nowMs, free = freeBytes }: MigrateOptions): void {
  const copy = copyBeforeUpgrade(db, { file, version: MIGRATIONS.length, bytes: liveBytes(db), free })
  log.info('upgrading the database', { file, copy, schema: MIGRATIONS.length })
  makeShrinkable(db, file, log)
  runSteps(db, (from) => db.run(NOTE_UPGRADE, nowMs, from))
  dropEarlierCopies(file, MIGRATIONS.length)
}

function runSteps(db: Database, note?: (from: number) => void): void {
  db.transaction(() => {
    const version = versionOf(db)
    if (version >= MIGRATIONS.length) return
    for (const step of missingSteps(version)) db.exec(step)
    note?.(version)
    db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`)
  })
}

const missingSteps = (version: number): readonly string[] =>
  version === 0 ? [BASE.sql, ...MIGRATIONS.slice(BASE.version)] : MIGRATIONS.slice(version)

/**
 * A file of the first release never shrinks. Rewriting it once changes that, and removes the remains of deleted rows. When there is
 * no room for the rewrite, the upgrade goes on without it.
 */
function makeShrinkable(db: Database, file: string, log: Logger): void {
  if (db.get<{ auto_vacuum: number }>('PRAGMA auto_vacuum')?.auto_vacuum === INCREMENTAL) return
  try {
    db.exec('PRAGMA auto_vacuum = INCREMENTAL; VACUUM')
  } catch (error) {
    if (storageFault(error) === undefined) throw error
    log.warn('database not rewritten, so its file will not shrink', { file, error })
  }
}

const liveBytes = (db: Database): number => db.get<{ bytes: number }>(LIVE_BYTES)?.bytes ?? 0

const versionOf = (db: Database): number => db.get<{ user_version: number }>('PRAGMA user_version')?.user_version ?? 0
