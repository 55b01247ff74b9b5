/** Stores for tests that need many of them. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from '@sluice/sdk'
import { Database } from '../connection/database.ts'
import { openStore, type StoreOptions } from '../open-store.ts'
import { migrate } from '../schema/migrate.ts'

let emptyFile: Uint8Array | undefined

/**
 * Opens a store as `openStore` does. A new file is a copy of one empty database, because most of the time of a short test would pass while
 * the schema is made.
 */
export function openTestStore(options: StoreOptions): Store {
  emptyFile ??= readEmptyFile()
  if (!existsSync(options.file)) writeFileSync(options.file, emptyFile, { mode: 0o600 })
  return openStore(options)
}

function readEmptyFile(): Uint8Array {
  const folder = mkdtempSync(join(tmpdir(), 'empty-store-'))
  const file = join(folder, 'sluice.db')
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  try {
    const db = new Database(file)
    db.makeDurable()
    migrate(db, { file, log, nowMs: 0 })
    db.close()
    return readFileSync(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
