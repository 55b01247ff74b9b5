/** Brings a file to the schema this release knows. */
import { AppError, type Logger } from '@sluice/sdk'
import type { Database } from './database.ts'
import { MIGRATIONS } from './schema.ts'

/**
 * Runs the steps the file lacks, each in its own transaction, so that a crash leaves it between two steps and never inside
 * one. Safe when two processes do it at once. Throws `unavailable` for a file a newer release wrote.
 */
export function migrate(db: Database, { file, log }: { readonly file: string; readonly log: Logger }): void {
  for (let version = versionOf(db); version !== MIGRATIONS.length; version = versionOf(db)) {
    if (version > MIGRATIONS.length) {
      throw new AppError(
        'unavailable',
        `${file} was written by a newer release (schema ${version}; this one knows up to ${MIGRATIONS.length}). Run that release, or move the file away.`,
      )
    }
    db.transaction(() => {
      if (versionOf(db) !== version) return
      db.exec(`${MIGRATIONS[version]}; PRAGMA user_version = ${version + 1}`)
    })
    log.debug('the store was migrated', { file, version: version + 1 })
  }
}

const versionOf = (db: Database): number => db.get<{ user_version: number }>('PRAGMA user_version')?.user_version ?? 0
