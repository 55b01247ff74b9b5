/** Opens the store of a data directory, and tells a new directory from one that lost its database. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { AppError, type Store } from '@sluice/sdk'
import { openStore, type StoreOptions } from './open-store.ts'
import { createSecretKey } from './secret-key.ts'

export const DATABASE_FILE = 'sluice.db'
export const KEY_FILE = 'secret.key'

export interface DataDirOptions extends Omit<StoreOptions, 'file'> {
  /** Absolute. */
  readonly dataDir: string
  /** True: a directory that was in use may start with a new, empty database. */
  readonly newDatabase?: boolean
}

/**
 * A key file stands beside every database, so a key without one means that the database was lost. Throws `config_invalid` then,
 * and what `openStore` throws.
 */
export function openDataDir({ dataDir, newDatabase = false, ...options }: DataDirOptions): Store {
  const [file, keyFile] = [join(dataDir, DATABASE_FILE), join(dataDir, KEY_FILE)]
  const isNew = !existsSync(file)
  if (isNew && !newDatabase && existsSync(keyFile)) {
    throw new AppError(
      'config_invalid',
      `${file} is missing, but ${keyFile} shows that this data directory was in use. Restore the database from a backup, or start with a new, empty one: sluice daemon --new-database`,
    )
  }
  const store = openStore({ file, ...options })
  if (isNew && !existsSync(keyFile)) createSecretKey(keyFile)
  return store
}
