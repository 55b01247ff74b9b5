/** What an upgrade does to the file of a database, seen before it happens, and the way back from one. */
import { copyFileSync, existsSync, mkdirSync, renameSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { syncFolder } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import { copiesOf, freeBytes, neededBytes } from '../connection/copy-before-upgrade.ts'
import { MIGRATIONS } from './schema.ts'

export interface UpgradePlan {
  /** The version of the schema in the file. */
  readonly from: number
  /** The version that this release writes. */
  readonly to: number
  /** The bytes that the start needs free for the copy; 0 if the schema stays. */
  readonly neededBytes: number
  readonly freeBytes: number
}

export interface Copy {
  readonly file: string
  /** The version of the schema in the copy. */
  readonly schema: number
  readonly madeAtMs: number
}

const SIZE =
  'SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()'

/** Returns what the next start of this release does to the file; undefined if there is no file. Changes nothing, also while a daemon runs. */
export function planUpgrade(file: string): UpgradePlan | undefined {
  if (!existsSync(file)) return undefined
  const from = schemaOf(file)
  const to = MIGRATIONS.length
  return { from, to, neededBytes: from === to ? 0 : neededBytes(read(file, SIZE, 'bytes')), freeBytes: freeBytes(dirname(file)) }
}

/** Returns the newest copy that an upgrade has made; undefined if there is none. */
export function newestCopy(file: string): Copy | undefined {
  const copy = existsSync(dirname(file)) ? copiesOf(file).at(-1) : undefined
  return copy && { file: copy.file, schema: schemaOf(copy.file), madeAtMs: copy.madeAtMs }
}

/**
 * Puts the newest copy in the place of the file and moves the file into a new folder beside it, whose path it returns. The caller holds the
 * lock of the data directory. An interrupted call leaves no file in its place, with which no daemon starts, and is finished by another call.
 * Throws `not_found` without a copy.
 */
export function rollBack(file: string, nowMs: number): { readonly copy: Copy; readonly newer: string } {
  const copy = newestCopy(file)
  if (!copy)
    throw new AppError(
      'not_found',
      `There is no copy from before an upgrade in ${dirname(file)}. A backup can be restored: 'sluice restore'`,
    )
  const newer = join(dirname(file), `after-upgrade-${new Date(nowMs).toISOString().replaceAll(/[:.]/g, '-')}`)
  // Until the last step, an interruption leaves the copy where another call finds it.
  const part = `${file}.rollback`
  copyFileSync(copy.file, part)
  mkdirSync(newer, { recursive: true, mode: 0o700 })
  for (const suffix of ['-wal', '-shm', '']) {
    const path = file + suffix
    if (existsSync(path)) renameSync(path, join(newer, basename(path)))
  }
  renameSync(part, file)
  renameSync(copy.file, join(newer, basename(copy.file)))
  syncFolder(dirname(file))
  return { copy, newer }
}

const schemaOf = (file: string): number => read(file, 'PRAGMA user_version', 'user_version')

function read(file: string, query: string, column: string): number {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    return Number(db.prepare(query).get()?.[column] ?? 0)
  } finally {
    db.close()
  }
}
