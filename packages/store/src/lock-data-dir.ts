/** The lock that allows one daemon per data directory. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { AppError, errorText } from '@sluice/sdk'
import { accessProblem } from './access-problem.ts'
import { createPrivately } from './database.ts'
import { isBusy } from './storage-error.ts'

export interface DataDirLock {
  /** Releases the lock. Idempotent. */
  release(): void
}

/**
 * Locks the directory until `release` or the end of the process; the kernel drops the lock even after a crash. Throws `conflict`
 * when another daemon holds it and `unavailable` when the lock file cannot be created. Returns at once.
 */
export function lockDataDir(dir: string): DataDirLock {
  const file = join(dir, 'daemon.lock')
  let connection: DatabaseSync | undefined
  try {
    createPrivately(file)
    connection = new DatabaseSync(file, { timeout: 0 })
    connection.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    connection?.close()
    if (isBusy(error)) {
      throw new AppError('conflict', `Another daemon is running on ${dir}. Stop it first, or give this one its own --data-dir.`)
    }
    throw new AppError('unavailable', `The data directory ${dir} cannot be locked: ${accessProblem(file) ?? errorText(error)}`, {
      cause: error,
    })
  }
  return held(connection)
}

/** The exit listener keeps a reference to the connection: the garbage collector would close it and drop the lock. */
function held(connection: DatabaseSync): DataDirLock {
  const release = () => {
    process.off('exit', release)
    if (connection.isOpen) connection.close()
  }
  process.on('exit', release)
  return { release }
}
