/** The parts of a rotation of the key: both keys are in the key file until everything is encrypted with the new one. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'
import { Database } from '../connection/database.ts'
import { DATABASE_FILE, KEY_FILE } from '../open-data-dir.ts'
import { MIGRATIONS } from '../schema/schema.ts'
import { toText } from '../tables/key-bytes.ts'
import { openSecretBox } from './secret-box.ts'
import { readSecretKeys, replaceSecretKeys } from './secret-key.ts'

/** The rows of one transaction, so that writes of a daemon get their turn in between. */
const SLICE_ROWS = 100
// Owners of secrets begin with 'secret:', as runtime/src/features/host.ts names them.
const OLD_ROWS = `
  SELECT owner, key, value_json AS json FROM key_values
  WHERE owner >= 'secret:' AND owner < 'secret;' AND value_json LIKE ?1 AND (owner, key) > (?2, ?3) ORDER BY owner, key LIMIT ${SLICE_ROWS}`
const REPLACE = 'UPDATE key_values SET value_json = ? WHERE owner = ? AND key = ? AND value_json = ?'

interface Row {
  readonly owner: string
  readonly key: Uint8Array
  readonly json: string
}

export interface Reencrypted {
  readonly changed: number
  /** Paths of values that could not be decrypted before either. They are unchanged. */
  readonly unreadable: readonly string[]
}

/**
 * Puts a new key in front of the old one, or goes on with a rotation that was interrupted. Returns the id of the old key. Throws
 * `not_found` without a key file.
 */
export function beginRotation(dataDir: string): string {
  const file = join(dataDir, KEY_FILE)
  const [current, previous] = readSecretKeys(file)
  if (!current) throw new AppError('not_found', `There is no key file ${file}, so no secret is encrypted.`)
  if (previous) return previous.id
  replaceSecretKeys(file, [{ bytes: randomBytes(32) }, current])
  return current.id
}

/** Removes the old key. */
export function endRotation(dataDir: string): void {
  const file = join(dataDir, KEY_FILE)
  replaceSecretKeys(file, readSecretKeys(file).slice(0, 1))
}

/** Encrypts the secrets of features in the database that have the old key with the new one, while a daemon may run. */
export function reencryptRows(dataDir: string, oldId: string): Reencrypted {
  const file = join(dataDir, DATABASE_FILE)
  if (!existsSync(file)) return { changed: 0, unreadable: [] }
  const db = new Database(file)
  try {
    db.makeDurable()
    requireSchema(db, file)
    return reencrypt(db, dataDir, oldId)
  } finally {
    db.close()
  }
}

/** A daemon of another release may not know a file with two keys. */
function requireSchema(db: Database, file: string): void {
  const version = db.get<{ user_version: number }>('PRAGMA user_version')?.user_version
  if (version !== MIGRATIONS.length && version !== 0)
    throw new AppError('unavailable', `${file} is of another release. Start the daemon of this release once, and then rotate the key.`)
}

function reencrypt(db: Database, dataDir: string, oldId: string): Reencrypted {
  const box = openSecretBox(dataDir)
  const unreadable: string[] = []
  let changed = 0
  let [owner, key]: [string, Uint8Array] = ['', new Uint8Array()]
  for (;;) {
    const rows = db.get('SELECT 1 FROM sqlite_schema WHERE name = ?', 'key_values')
      ? db.all<Row>(OLD_ROWS, `"enc:1:${oldId}:%`, owner, key)
      : []
    const fresh = rows.flatMap((row) => {
      const path = `secrets.${row.owner.slice('secret:'.length)}.${toText(row.key)}`
      try {
        return [{ ...row, text: JSON.stringify(box.encrypt(box.decrypt(JSON.parse(row.json), path), path)) }]
      } catch {
        unreadable.push(path)
        return []
      }
    })
    changed += db.transaction(() => fresh.reduce((sum, row) => sum + db.run(REPLACE, row.text, row.owner, row.key, row.json), 0))
    const last = rows.at(-1)
    if (!last || rows.length < SLICE_ROWS) return { changed, unreadable }
    ;[owner, key] = [last.owner, last.key]
  }
}
