/** The copy of a database that is kept when a newer release upgrades it. */
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, statfsSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { AppError } from '@sluice/sdk'
import { createPrivately, type Database, syncFolder } from './database.ts'

/** The copy itself, and as much again for the log of the rewrite that follows. */
const ROOM_FACTOR = 2
/** Pages of the schema steps, and room for the daemon to write its first rows. */
const ROOM_EXTRA_BYTES = 4 * 1024 * 1024
const DAY_MS = 86_400_000
/** How long a copy is kept. */
export const COPY_DAYS = 30

export interface CopyOptions {
  /** The database. */
  readonly file: string
  /** The schema it is upgraded to. */
  readonly version: number
  /** The size of what is copied. */
  readonly bytes: number
  /** Bytes that a folder has room for. */
  readonly free: (folder: string) => number
}

const copyName = (file: string, version: number): string => `${file}.before-schema-${version}`

/**
 * Writes a consistent copy beside the file, with what its log holds, and returns its name. A crash leaves either no copy or a
 * whole one; a copy of an earlier attempt is replaced. Throws `unavailable` when there is no room.
 */
export function copyBeforeUpgrade(db: Database, { file, version, bytes, free }: CopyOptions): string {
  const folder = dirname(file)
  const copy = copyName(file, version)
  const part = `${copy}.part`
  rmSync(part, { force: true })
  const needed = ROOM_FACTOR * bytes + ROOM_EXTRA_BYTES
  const available = free(folder)
  if (available < needed) {
    throw new AppError(
      'unavailable',
      `${file} has to be copied before this release upgrades it, and ${folder} has no room for that: ${needed} bytes are needed, ${available} are free. Make room and start again; nothing was changed.`,
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

export const freeBytes = (folder: string): number => {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** The copies beside a database, oldest schema first. */
export function copiesOf(file: string): readonly { readonly file: string; readonly version: number; readonly madeAtMs: number }[] {
  const prefix = `${basename(file)}.before-schema-`
  return readdirSync(dirname(file))
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .map((name) => ({ file: join(dirname(file), name), version: Number(name.slice(prefix.length)) }))
    .map((copy) => ({ ...copy, madeAtMs: statSync(copy.file).mtimeMs }))
    .toSorted((a, b) => a.version - b.version)
}

/** After an upgrade: only its own copy is kept. */
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
