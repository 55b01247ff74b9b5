/** Restores a backup: unpacks and checks it next to the data, and then puts it in the place of the data. See docs/guides/backup.md. */

import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  futimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { syncFolder } from '@sluice/kit'
import { AppError, type Clock, errorText, type Logger } from '@sluice/sdk'
import { lockDataDir } from '@sluice/store'
import { type Marked, markRestored } from '@sluice/store/mark-restored'
import { secretKeyIds } from '@sluice/store/secret-box'
import { type ArchiveEntry, type ReadArchive, type ReadOptions, readArchive } from './archive.ts'
import { ASIDE_PREFIX, JOURNAL_FILE, KEY_FILE, STAGING_PREFIX, staysInPlace } from './contents.ts'
import { isThere, moveEntries, writeJournal } from './finish-restore.ts'
import type { Manifest } from './manifest.ts'

export interface RestoreOptions extends Pick<ReadOptions, 'file' | 'passphrase' | 'onRead' | 'skipLinks'> {
  /** An absolute path; made if it is missing. */
  readonly dataDir: string
  readonly clock: Clock
  readonly log: Logger
}

export interface Restored {
  readonly manifest: Manifest
  /** The folder that holds the replaced data; undefined if there was none. */
  readonly aside: string | undefined
  readonly marked: Marked
  /** The ids of keys that encrypted values of the backup need and the data directory does not have. */
  readonly missingKeys: readonly string[]
  /** The links that led out of the data directory and are not restored. */
  readonly skipped: readonly string[]
}

/**
 * Resolves once the data directory holds the backup, durably. Until everything is checked, the data directory is unchanged; a crash
 * leaves the old data or the new data, never a part of it. Throws `conflict` while a daemon or a command uses the data directory,
 * `invalid_request` for a file that is not a sound backup, and `unavailable` for a full disk or a database of a newer release.
 */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { dataDir, clock, log } = options
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const lock = lockForRestore(dataDir)
  try {
    moveEntries(dataDir)
    removeStaging(dataDir)
    const staging = `${STAGING_PREFIX}${randomBytes(4).toString('hex')}`
    const folder = join(dataDir, staging)
    try {
      const { manifest, skipped } = await unpack(options, folder)
      const marked = markRestored({ file: join(folder, 'sluice.db'), backupAtMs: Date.parse(manifest.created_at), clock, log })
      removeCopies(folder)
      syncFolder(folder)
      const aside = replaceWith(options, staging)
      const known = new Set(secretKeyIds(dataDir))
      return { manifest, marked, aside, skipped, missingKeys: manifest.key_ids.filter((id) => !known.has(id)) }
    } finally {
      // A journal means that the restore is decided, and finished by the next command.
      if (!existsSync(join(dataDir, JOURNAL_FILE))) rmSync(folder, { recursive: true, force: true })
    }
  } catch (error) {
    throw asRestoreError(dataDir, error)
  } finally {
    lock.release()
  }
}

function lockForRestore(dataDir: string): ReturnType<typeof lockDataDir> {
  try {
    return lockDataDir(dataDir)
  } catch (cause) {
    if (!(cause instanceof AppError) || cause.code !== 'conflict') throw cause
    throw new AppError('conflict', `A daemon is running on ${dataDir}, or a command uses it. Stop it before you restore a backup.`, {
      cause,
    })
  }
}

/** Checks a backup and changes nothing. Rejects as `restoreBackup` does. */
export const checkBackup = async (options: Pick<ReadOptions, 'file' | 'passphrase' | 'onRead' | 'skipLinks'>): Promise<Manifest> =>
  (await readArchive(options)).manifest

/** What an interrupted restore left behind before it was decided. */
function removeStaging(dataDir: string): void {
  for (const name of readdirSync(dataDir))
    if (name.startsWith(STAGING_PREFIX)) rmSync(join(dataDir, name), { recursive: true, force: true })
}

/** An upgrade of the restored database leaves a copy of it, which the backup itself is. */
function removeCopies(folder: string): void {
  for (const name of readdirSync(folder)) if (name.startsWith('sluice.db.before-schema-')) rmSync(join(folder, name))
}

/** Puts the entries of the staging folder in the place of the old ones. Returns the folder of the old ones, if there are any. */
function replaceWith({ dataDir, file, clock }: RestoreOptions, staging: string): string | undefined {
  const fresh = readdirSync(join(dataDir, staging))
  const replacesKey = fresh.includes(KEY_FILE)
  const own = resolve(file)
  const old = readdirSync(dataDir).filter(
    // The backup itself may be in the data directory.
    (name) => !staysInPlace(name, replacesKey) && own !== join(dataDir, name) && !own.startsWith(`${join(dataDir, name)}/`),
  )
  const conflict = fresh.find((name) => !old.includes(name) && isThere(join(dataDir, name)))
  if (conflict !== undefined)
    throw new AppError('conflict', `The backup is in ${join(dataDir, conflict)}, which it would replace. Move it elsewhere.`)
  const aside = `${ASIDE_PREFIX}${new Date(clock.nowMs()).toISOString().replace(/[-:.]/g, '')}`
  writeJournal(dataDir, { staging, aside, old, fresh })
  moveEntries(dataDir)
  return old.length > 0 ? join(dataDir, aside) : undefined
}

/** Unpacks the whole archive, durably. Links are made last, so that no file is written through one. */
async function unpack({ file, passphrase, onRead, skipLinks = false }: RestoreOptions, folder: string): Promise<ReadArchive> {
  mkdirSync(folder, { mode: 0o700 })
  const folders = new Set([folder])
  const take = async ({ path, type, header, chunks }: ArchiveEntry): Promise<void> => {
    if (type === 'symlink') return
    const target = join(folder, path)
    makeFolder(type === 'directory' ? target : dirname(target), folders)
    if (type === 'file') await writeFile(target, header, chunks)
  }
  const read = await readArchive({ file, passphrase, take, skipLinks, ...(onRead && { onRead }) })
  if (!existsSync(join(folder, 'sluice.db'))) throw new AppError('invalid_request', `${file} has no database.`)
  for (const [path, target] of read.links) {
    makeFolder(dirname(join(folder, path)), folders)
    symlinkSync(target, join(folder, path))
  }
  for (const one of folders) syncFolder(one)
  return read
}

function makeFolder(path: string, known: Set<string>): void {
  if (known.has(path)) return
  makeFolder(dirname(path), known)
  mkdirSync(path, { mode: 0o700 })
  known.add(path)
}

async function writeFile(path: string, { mode = 0o600, mtime }: ArchiveEntry['header'], chunks: ArchiveEntry['chunks']): Promise<void> {
  const descriptor = openSync(path, 'wx', 0o600)
  try {
    for await (const chunk of chunks) for (let at = 0; at < chunk.length; ) at += writeSync(descriptor, chunk, at)
    fchmodSync(descriptor, mode & 0o777)
    if (mtime) futimesSync(descriptor, mtime, mtime)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

function asRestoreError(dataDir: string, error: unknown): unknown {
  if (error instanceof AppError || !(error instanceof Error && 'code' in error)) return error
  const cure = error.code === 'ENOSPC' || error.code === 'EDQUOT' ? ' Make room and restore again; the data is unchanged.' : ''
  return new AppError('unavailable', `${dataDir} cannot be restored: ${errorText(error)}.${cure}`, { cause: error })
}
