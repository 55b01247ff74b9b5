/** Opens the store of a data directory and refuses a directory whose database has been lost. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { AppError, type Store } from '@sluice/sdk'
import { type DataDirLock, lockDataDir } from './connection/lock-data-dir.ts'
import { openStore, type StoreOptions } from './open-store.ts'
import { createSecretKey } from './secrets/secret-key.ts'

/** The names of the database and of the key file in a data directory. */
export const DATABASE_FILE = 'sluice.db'
export const KEY_FILE = 'secret.key'

export interface DataDirOptions extends Omit<StoreOptions, 'file' | 'lockForUpgrade'> {
  /** An absolute path. */
  readonly dataDir: string
  /** True: a directory that was in use may start with a new, empty database. */
  readonly newDatabase?: boolean
  /** The lock of the directory, if the caller holds it. */
  readonly lock?: DataDirLock | undefined
}

/**
 * Every database has a key file next to it, so a key file without a database means that the database was lost. Throws
 * `config_invalid` in that case, `conflict` when a daemon runs on a database that must be upgraded first, and the errors of `openStore`.
 */
export function openDataDir({ dataDir, newDatabase = false, lock, ...options }: DataDirOptions): Store {
  const [file, keyFile] = [join(dataDir, DATABASE_FILE), join(dataDir, KEY_FILE)]
  const isNew = !existsSync(file)
  if (isNew && !newDatabase && existsSync(keyFile)) {
    throw new AppError(
      'config_invalid',
      `${file} is missing, but ${keyFile} shows that this data directory was in use. Restore the database from a backup, or start with a new, empty one: sluice daemon --new-database`,
    )
  }
  const store = openStore({ file, ...options, lockForUpgrade: () => lock?.exclusive() ?? lockForUpgrade(dataDir) })
  if (isNew && !existsSync(keyFile)) createSecretKey(keyFile)
  return store
}

/** An upgrade would change the tables under a running daemon, so the daemon must be stopped first. */
function lockForUpgrade(dataDir: string): DataDirLock {
  try {
    return lockDataDir(dataDir)
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'conflict') throw error
    throw new AppError(
      'conflict',
      `A daemon of an earlier release is running on ${dataDir}, and this release has to upgrade its database first. Stop that daemon and start this release's.`,
    )
  }
}
