/** Saves the configuration file atomically and never overwrites the change of another process. */
import { randomBytes } from 'node:crypto'
import type { Stats } from 'node:fs'
import { chmod, type FileHandle, lstat, mkdir, open, readFile, readlink, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { AppError, errorText } from '@sluice/sdk'

const LOCK_WAIT_MS = 2000
const LOCK_RETRY_MS = 20
const LINKS_MAX = 40
const PRIVATE = 0o600

export interface SaveOptions {
  /** The path. A symbolic link stays, and its target is replaced. */
  readonly file: string
  readonly text: string
  /** The text that the change was made from; `undefined` when there was no file. */
  readonly expected: string | undefined
}

/**
 * Replaces the file atomically and resolves when it is on stable storage. A new file is readable for its owner only; an
 * existing one keeps its mode and owner. Throws `conflict` when the file differs from `expected` or another process does not
 * finish saving, and `unavailable` when the file cannot be written; the old file is then unchanged.
 */
export async function saveConfig({ file, text, expected }: SaveOptions): Promise<void> {
  try {
    const target = await targetOf(file)
    await mkdir(dirname(target), { recursive: true, mode: 0o700 })
    const unlock = await lock(target)
    try {
      if ((await readText(target)) !== expected) {
        throw new AppError('conflict', `${file} has changed since it was read; nothing was saved`)
      }
      await replace(target, text)
    } finally {
      unlock()
    }
  } catch (cause) {
    if (cause instanceof AppError) throw cause
    throw new AppError('unavailable', `${file} cannot be saved: ${errorText(cause)}`, { cause })
  }
}

/** Resolves links to their target, which need not exist. */
async function targetOf(file: string): Promise<string> {
  let target = file
  for (let links = 0; links < LINKS_MAX; links++) {
    const isLink = await lstat(target).then(
      (status) => status.isSymbolicLink(),
      () => false,
    )
    if (!isLink) return realpath(target).catch(() => target)
    target = resolve(dirname(target), await readlink(target))
  }
  throw new AppError('unavailable', `${file} is a link that leads in circles`)
}

/**
 * Waits until no other process saves this file. The lock is a transaction on an empty SQLite file, because Node has no file
 * locks, and the lock ends with its process, however the process ends.
 */
async function lock(target: string): Promise<() => void> {
  const { DatabaseSync } = await import('node:sqlite')
  const file = `${target}.lock`
  await makePrivate(file, target)
  const database = new DatabaseSync(file, { timeout: 0 })
  try {
    for (let waitedMs = 0; waitedMs < LOCK_WAIT_MS; waitedMs += LOCK_RETRY_MS) {
      if (tryLock(database)) return () => database.close()
      await setTimeout(LOCK_RETRY_MS)
    }
    throw new AppError('conflict', `${target} is being saved by another process`)
  } catch (error) {
    database.close()
    throw error
  }
}

/**
 * Makes the lock readable for the owner of the configuration only; SQLite would give it the mode 0644. Never opens an existing file,
 * because closing it would drop the lock that this process may hold.
 */
async function makePrivate(file: string, target: string): Promise<void> {
  try {
    await use(await open(file, 'wx', PRIVATE), (handle) => keepOwner(handle, target))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    // A release before this one made it. Another user's file stays as it is.
    await chmod(file, PRIVATE).catch(() => undefined)
  }
}

const SQLITE_BUSY = 5

function tryLock(database: { exec(sql: string): void }): boolean {
  try {
    database.exec('BEGIN EXCLUSIVE')
    return true
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return false
    throw error
  }
}

async function readText(target: string): Promise<string | undefined> {
  try {
    return await readFile(target, 'utf8')
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw error
  }
}

/** Renames a complete new file over the old one and syncs the folder, because a crash could otherwise undo the renaming. */
async function replace(target: string, text: string): Promise<void> {
  const folder = dirname(target)
  const fresh = join(folder, `.${basename(target)}.${process.pid}.${randomBytes(4).toString('hex')}`)
  try {
    await use(await open(fresh, 'wx', PRIVATE), async (handle) => {
      await handle.writeFile(text)
      const before = await keepOwner(handle, target)
      if (before) await handle.chmod(before.mode & 0o7777)
      await handle.sync()
    })
    await rename(fresh, target)
  } catch (error) {
    await rm(fresh, { force: true })
    throw error
  }
  if (process.platform !== 'win32') await use(await open(folder), (handle) => handle.sync())
}

/** Gives a new file to the owner of the configuration, so that the daemon can use it when an administrator saves. Returns its status. */
async function keepOwner(handle: FileHandle, target: string): Promise<Stats | undefined> {
  const before = await stat(target).catch((error) => {
    if (isAbsent(error)) return undefined
    throw error
  })
  if (before && (before.uid !== process.getuid?.() || before.gid !== process.getgid?.())) await handle.chown(before.uid, before.gid)
  return before
}

async function use(handle: FileHandle, work: (handle: FileHandle) => Promise<unknown>): Promise<void> {
  try {
    await work(handle)
  } finally {
    await handle.close()
  }
}

const isAbsent = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'
