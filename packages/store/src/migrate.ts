/** Brings a file to the schema this release knows. */
import { AppError, type Logger } from '@sluice/sdk'
import { copyBeforeUpgrade, dropEarlierCopies, freeBytes } from './copy-before-upgrade.ts'
import type { Database } from './database.ts'
import { MIGRATIONS } from './schema.ts'
import { storageFault } from './storage-error.ts'

const NOTE_UPGRADE = 'INSERT INTO upgrades (at, from_schema) VALUES (?, ?)'
/** The pages of the file that hold something. */
const LIVE_BYTES = `
  SELECT (page_count - freelist_count) * page_size AS bytes
  FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`
const INCREMENTAL = 2

export interface MigrateOptions {
  readonly file: string
  readonly log: Logger
  readonly nowMs: number
  /** Keeps daemons away from the file while it is upgraded, and throws if one runs. Left out: the caller already does this. */
  readonly lock?: () => { release(): void }
  /** Bytes that a folder has room for; for tests. */
  readonly free?: (folder: string) => number
}

/**
 * Runs the steps the file lacks in one transaction, so that a crash leaves the old schema or the new one. Before that, a file
 * that an earlier release wrote is copied. Safe when two processes do it at once. Throws `unavailable` for a file that a newer
 * release wrote, and when the disk has no room for the copy.
 */
export function migrate(db: Database, options: MigrateOptions): void {
  const from = versionOf(db)
  if (from === MIGRATIONS.length) return
  if (from > MIGRATIONS.length) {
    throw new AppError(
      'unavailable',
      `${options.file} was written by a newer release (schema ${from}; this one knows up to ${MIGRATIONS.length}). Run that release, or move the file away.`,
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
  log.info('Upgrading the database; a copy of it as it was is kept.', { file, copy, schema: MIGRATIONS.length })
  makeShrinkable(db, file, log)
  runSteps(db, (from) => db.run(NOTE_UPGRADE, nowMs, from))
  dropEarlierCopies(file, MIGRATIONS.length)
}

function runSteps(db: Database, note?: (from: number) => void): void {
  db.transaction(() => {
    const version = versionOf(db)
    if (version >= MIGRATIONS.length) return
    for (const step of MIGRATIONS.slice(version)) db.exec(step)
    note?.(version)
    db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`)
  })
}

/**
 * Files of the first release never give pages back; rewriting one once changes that, and removes what deleted rows left in it.
 * Without room for it the upgrade goes on.
 */
function makeShrinkable(db: Database, file: string, log: Logger): void {
  if (db.get<{ auto_vacuum: number }>('PRAGMA auto_vacuum')?.auto_vacuum === INCREMENTAL) return
  try {
    db.exec('PRAGMA auto_vacuum = INCREMENTAL; VACUUM')
  } catch (error) {
    if (storageFault(error) === undefined) throw error
    log.warn('The database could not be rewritten. It works, but its file will not become smaller.', { file, error })
  }
}

const liveBytes = (db: Database): number => db.get<{ bytes: number }>(LIVE_BYTES)?.bytes ?? 0

const versionOf = (db: Database): number => db.get<{ user_version: number }>('PRAGMA user_version')?.user_version ?? 0
