/** What an upgrade does to the file of a database, seen before it happens, and the way back from one. */
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { syncFolder } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import { copiesOf, copyName, freeBytes, neededBytes } from '../connection/copy-before-upgrade.ts'
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

/** Returns what the next start of this release does to the file; undefined without the file. Changes nothing, also while a daemon runs. */
export function planUpgrade(file: string): UpgradePlan | undefined {
  if (!existsSync(file)) return undefined
  const from = schemaOf(file)
  const to = MIGRATIONS.length
  return { from, to, neededBytes: from === to ? 0 : neededBytes(read(file, SIZE, 'bytes')), freeBytes: freeBytes(dirname(file)) }
}

/** Returns the newest copy that an upgrade has made; undefined without one. */
export function newestCopy(file: string): Copy | undefined {
  const copy = existsSync(dirname(file)) ? copiesOf(file).at(-1) : undefined
  return copy && { file: copy.file, schema: schemaOf(copy.file), madeAtMs: copy.madeAtMs }
}

/**
 * Returns the copy that undoes the last upgrade of the file. Throws `not_found` without a copy, and `conflict` if it is not of the last
 * upgrade, or if the file has been put back already. Changes nothing.
 */
export function copyToRollBack(file: string): Copy {
  const copy = newestCopy(file)
  if (!copy)
    throw new AppError(
      'not_found',
      `There is no copy from before an upgrade in ${dirname(file)}. A backup can be restored: 'sluice restore'`,
    )
  // An interrupted call has moved the file away; nothing is lost by finishing it.
  if (existsSync(file)) requireLastUpgrade(file, copy)
  return copy
}

function requireLastUpgrade(file: string, copy: Copy): void {
  const schema = schemaOf(file)
  const refused = (reason: string): AppError =>
    new AppError('conflict', `${reason}, so ${copy.file} (form ${copy.schema}) does not replace it. ${BY_HAND}`)
  const left = formsLeft(file).findLast((form) => form > schema)
  if (left !== undefined) throw refused(`${file} has been put back from form ${left} to form ${schema} already`)
  const isOfLast = basename(copy.file) === copyName(basename(file), schema) && copy.schema < schema && lastUpgradeFrom(file) === copy.schema
  if (!isOfLast) throw refused(`The last upgrade of ${file} (form ${schema}) has not made the copy`)
}

const BY_HAND = 'To go back to this copy all the same, move the database and its -wal and -shm files away, and the copy in its place'
const LEFT_FOLDER = 'after-upgrade-'

/** Returns the forms that earlier calls have left, in ascending order: each has moved the copy along with the database. */
const formsLeft = (file: string): readonly number[] =>
  readdirSync(dirname(file), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name.startsWith(LEFT_FOLDER))
    .flatMap(({ name }) => copiesOf(join(dirname(file), name, basename(file))))
    .map(({ version }) => version)
    .toSorted((a, b) => a - b)

/** Returns the form before the last upgrade of the file; undefined if it was never upgraded. */
function lastUpgradeFrom(file: string): number | undefined {
  if (read(file, "SELECT count(*) AS found FROM sqlite_schema WHERE name = 'upgrades'", 'found') === 0) return undefined
  return read(file, 'SELECT from_schema FROM upgrades ORDER BY rowid DESC LIMIT 1', 'from_schema')
}

/**
 * Puts the copy of `copyToRollBack` in the place of the file and moves the file into a new folder next to it, whose path it returns. The
 * caller holds the lock of the data directory. An interrupted call leaves no file in its place, with which no daemon starts, and is finished
 * by another call.
 */
export function rollBack(file: string, nowMs: number): { readonly copy: Copy; readonly newer: string } {
  const copy = copyToRollBack(file)
  const newer = join(dirname(file), LEFT_FOLDER + new Date(nowMs).toISOString().replaceAll(/[:.]/g, '-'))
  // Until the last step, an interruption leaves the copy where another call finds it.
  const part = `${file}.rollback`
  copyFileSync(copy.file, part)
  if (existsSync(file)) moveLogIntoFile(file)
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

/** Makes the file complete without its log, so that an interruption between two renames parts nothing. Throws `conflict` while a program reads it. */
function moveLogIntoFile(file: string): void {
  const db = new DatabaseSync(file)
  try {
    if (Number(db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy) !== 0)
      throw new AppError('conflict', `Another program has ${file} open. End it, and run the command again.`)
  } finally {
    db.close()
  }
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
