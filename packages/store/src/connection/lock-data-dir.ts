/** The lock of a data directory: one daemon holds it alone, or several commands share it while no daemon runs. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError, errorText } from '@sluice/sdk'
import { accessProblem } from './access-problem.ts'
import { createPrivately } from './database.ts'
import { isBusy } from './storage-error.ts'

export interface DataDirLock {
  /** Releases the lock. Idempotent. */
  release(): void
  /** Keeps every other holder out until the returned lock is released. Throws `conflict` while another command shares the lock. */
  exclusive(): { release(): void }
}

const EXCLUSIVE = 'BEGIN EXCLUSIVE'
/** A transaction that has read keeps a daemon out, and no other command. */
const SHARED = 'BEGIN; SELECT 1 FROM sqlite_schema'

/** The time that a daemon waits for commands, most of which take less than a second. */
const COMMANDS_MS_MAX = 10_000
const RETRY_MS = 20

/**
 * Locks the directory for a daemon until `release` or the end of the process; the kernel drops the lock even after a crash. Throws
 * `conflict` while another daemon or a command holds the lock, and `unavailable` when the lock file cannot be created. Returns at once.
 */
export function lockDataDir(dir: string): DataDirLock {
  const connection = openLocked(dir, EXCLUSIVE)
  if (!connection) throw inUse(dir)
  const { release } = held(connection)
  return { release, exclusive: () => ({ release: () => {} }) }
}

/** As `lockDataDir`, but waits at most `waitMs` for commands that share the lock. Another daemon is not waited for. */
export async function lockDataDirAfterCommands(dir: string, waitMs: number = COMMANDS_MS_MAX): Promise<DataDirLock> {
  for (const endMs = performance.now() + waitMs; ; ) {
    try {
      return lockDataDir(dir)
    } catch (error) {
      const isInUse = error instanceof AppError && error.code === 'conflict'
      if (!isInUse || !isShared(dir) || performance.now() >= endMs) throw error
    }
    await sleep(RETRY_MS)
  }
}

/** Whether no daemon holds the lock at this moment. */
function isShared(dir: string): boolean {
  const share = shareDataDir(dir)
  share?.release()
  return share !== undefined
}

const inUse = (dir: string): AppError =>
  new AppError(
    'conflict',
    `Another daemon is running on ${dir}, or a command uses it. Stop the other daemon first, or give this one a data directory of its own (--data-dir).`,
  )

/** Locks the directory for a command that works without a daemon; undefined while a daemon holds the lock. Returns at once. */
export function shareDataDir(dir: string): DataDirLock | undefined {
  const connection = openLocked(dir, SHARED)
  if (!connection) return undefined
  const share = () => connection.exec(`COMMIT; ${SHARED}`)
  return {
    ...held(connection),
    exclusive() {
      try {
        connection.exec(`COMMIT; ${EXCLUSIVE}`)
        return { release: share }
      } catch (error) {
        connection.exec(SHARED)
        if (!isBusy(error)) throw error
        throw new AppError('conflict', `Another command uses ${dir}, and this one has to upgrade its database first. Run it again later.`)
      }
    },
  }
}

/** Returns the connection that holds the lock; undefined while another one keeps it out. */
function openLocked(dir: string, statement: string): DatabaseSync | undefined {
  const file = join(dir, 'daemon.lock')
  let connection: DatabaseSync | undefined
  try {
    createPrivately(file)
    connection = new DatabaseSync(file, { timeout: 0 })
    connection.exec(statement)
    return connection
  } catch (error) {
    connection?.close()
    if (isBusy(error)) return undefined
    throw new AppError('unavailable', `The data directory ${dir} cannot be locked: ${accessProblem(file) ?? errorText(error)}`, {
      cause: error,
    })
  }
}

/** The connections that hold a lock: the garbage collector would close any other and drop its lock. The end of the process drops them all. */
const HELD = new Set<DatabaseSync>()

function held(connection: DatabaseSync): { release(): void } {
  HELD.add(connection)
  return {
    release() {
      HELD.delete(connection)
      if (connection.isOpen) connection.close()
    },
  }
}
