/** The copy of a database that is made before an upgrade and kept for a while. */
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, statfsSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { syncFolder } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import { createPrivately, type Database } from './database.ts'

/** Room for the copy, and for the log of the rewrite that follows. */
const ROOM_FACTOR = 2
/** Room for the new pages of the migration and the daemon's first rows. */
const ROOM_EXTRA_BYTES = 4 * 1024 * 1024
const DAY_MS = 86_400_000
/** The number of days after which a copy is deleted. */
export const COPY_DAYS = 30

export interface CopyOptions {
  /** The path of the database. */
  readonly file: string
  /** The schema version after the upgrade. */
  readonly version: number
  /** The size of the pages in use. */
  readonly bytes: number
  /** Returns the free bytes of a folder's file system. */
  readonly free: (folder: string) => number
}

/** Returns the path of the copy that the upgrade to this schema version makes. */
export const copyName = (file: string, version: number): string => `${file}.before-schema-${version}`

/** Returns the bytes that must be free before an upgrade of a database whose pages in use have this size. */
export const neededBytes = (bytes: number): number => ROOM_FACTOR * bytes + ROOM_EXTRA_BYTES

/**
 * Writes a consistent copy next to the file, including the content of its log, and returns its path. A crash leaves either no copy
 * or a complete one. Replaces the copy of an earlier attempt. Throws `unavailable` when the disk has no room.
 */
export function copyBeforeUpgrade(db: Database, { file, version, bytes, free }: CopyOptions): string {
  const folder = dirname(file)
  const copy = copyName(file, version)
  const part = `${copy}.part`
  rmSync(part, { force: true })
  const needed = neededBytes(bytes)
  const available = free(folder)
  if (available < needed) {
    throw new AppError(
      'unavailable',
      `${file} must be copied before the upgrade, but ${folder} has too little room: ${needed} bytes are needed, ${available} are free. Make room and start again; the database is unchanged.`,
    )
  }
  try {
    createPrivately(part)
    db.run('VACUUM INTO ?', part)
    sync(part)
    renameSync(part, copy)
    syncFolder(folder)
  } catch (error) {
    rmSync(part, { force: true })
    throw error
  }
  return copy
}

/** Returns the bytes that this user can still write to the folder's file system. */
export const freeBytes = (folder: string): number => {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** Returns the copies of a database, oldest schema first. */
export function copiesOf(file: string): readonly { readonly file: string; readonly version: number; readonly madeAtMs: number }[] {
  const prefix = `${basename(file)}.before-schema-`
  return readdirSync(dirname(file))
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .map((name) => ({ file: join(dirname(file), name), version: Number(name.slice(prefix.length)) }))
    .map((copy) => ({ ...copy, madeAtMs: statSync(copy.file).mtimeMs }))
    .toSorted((a, b) => a.version - b.version)
}

/** Removes the copies of earlier upgrades. */
export function dropEarlierCopies(file: string, version: number): void {
  for (const copy of copiesOf(file)) if (copy.version < version) rmSync(copy.file, { force: true })
}

/** Removes copies older than `COPY_DAYS`. */
export function dropOldCopies(file: string, nowMs: number): void {
  for (const { file: copy, madeAtMs } of copiesOf(file)) if (nowMs - madeAtMs > COPY_DAYS * DAY_MS) rmSync(copy, { force: true })
}

function sync(file: string): void {
  const descriptor = openSync(file, 'r+')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
