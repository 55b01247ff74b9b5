/** Saves the configuration file as a whole: complete or not at all, and never over somebody else's change. */
import { randomBytes } from 'node:crypto'
import { type FileHandle, lstat, mkdir, open, readFile, readlink, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { AppError, errorText } from '@sluice/sdk'

const LOCK_WAIT_MS = 2000
const LOCK_RETRY_MS = 20
const LINKS_MAX = 40

export interface SaveOptions {
  /** A symbolic link is followed: what it leads to is replaced, and the link stays. */
  readonly file: string
  readonly text: string
  /** What the file held when the change was made; `undefined` if there was none. */
  readonly expected: string | undefined
}

/**
 * Replaces the file atomically; it is on stable storage once this resolves. A new one is readable for its owner alone, an
 * existing one keeps its mode and owner. Throws `conflict` if the file is not what was expected, or if somebody else is
 * saving and does not finish; `unavailable` if it cannot be written, and then the old file is untouched.
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

/** Where the links lead, also when what they lead to is not there yet. */
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
 * Waits until no other process saves this file. The lock is a transaction on an empty SQLite file: Node has no file locks
 * of its own, and unlike a file that says "locked", this one ends with its holder, however that ends.
 */
async function lock(target: string): Promise<() => void> {
  const { DatabaseSync } = await import('node:sqlite')
  const database = new DatabaseSync(`${target}.lock`, { timeout: 0 })
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

/** A complete file beside the old one takes its place; the folder is synced too, or a crash could undo the renaming. */
async function replace(target: string, text: string): Promise<void> {
  const folder = dirname(target)
  const fresh = join(folder, `.${basename(target)}.${process.pid}.${randomBytes(4).toString('hex')}`)
  const before = await stat(target).catch((error) => {
    if (isAbsent(error)) return undefined
    throw error
  })
  try {
    await use(await open(fresh, 'wx', 0o600), async (handle) => {
      await handle.writeFile(text)
      // Saved by an administrator, the file stays readable for the daemon's own user.
      if (before && (before.uid !== process.getuid?.() || before.gid !== process.getgid?.())) await handle.chown(before.uid, before.gid)
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

async function use(handle: FileHandle, work: (handle: FileHandle) => Promise<void>): Promise<void> {
  try {
    await work(handle)
  } finally {
    await handle.close()
  }
}

const isAbsent = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'
