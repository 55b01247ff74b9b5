/** One daemon per data directory. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { AppError, errorText } from '@sluice/sdk'
import { accessProblem } from './access-problem.ts'
import { createPrivately } from './database.ts'
import { isBusy } from './storage-error.ts'

export interface DataDirLock {
  /** Lets the next daemon in. Idempotent. */
  release(): void
}

/**
 * Takes the directory for this process, until `release` or the end of the process, however it ends: the kernel drops the
 * lock with it. Throws `conflict` when another daemon has it, `unavailable` when the lock file cannot be made. Writes nothing
 * and waits for nothing.
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

/** A connection nobody refers to is closed by the garbage collector, and its lock is gone: the process itself refers to it. */
function held(connection: DatabaseSync): DataDirLock {
  const release = () => {
    process.off('exit', release)
    if (connection.isOpen) connection.close()
  }
  process.on('exit', release)
  return { release }
}
