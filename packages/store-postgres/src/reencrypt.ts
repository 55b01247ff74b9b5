/** Encrypts the secrets of features in the database with a new key, in small transactions, while daemons may run. */
import { openSecretBox } from '@sluice/store/secret-box'
import { toText } from '@sluice/store/shared'
import { type ConnectionSettings, connect, disconnect, sql } from './connection.ts'
import { storeError } from './postgres-error.ts'

const SLICE_ROWS = 100
// Owners of secrets begin with 'secret:', as runtime/src/features/host.ts names them.
const OLD_ROWS = `
  SELECT owner, key, value_json AS json FROM key_values
  WHERE owner >= 'secret:' AND owner < 'secret;' AND value_json LIKE $1 AND (owner, key) > ($2, $3) ORDER BY owner, key LIMIT ${SLICE_ROWS}`
const REPLACE = `
  UPDATE key_values SET value_json = fresh.json
  FROM unnest($1::text[], $2::bytea[], $3::text[], $4::text[]) AS fresh (owner, key, json, old)
  WHERE key_values.owner = fresh.owner AND key_values.key = fresh.key AND value_json = fresh.old RETURNING 1`
const NOTE_KEY = "UPDATE meta SET value = $1 WHERE key = 'key_id'"

interface Row {
  readonly owner: string
  readonly key: Uint8Array
  readonly json: string
}

export interface ReencryptOptions {
  readonly settings: ConnectionSettings
  readonly dataDir: string
  readonly oldId: string
  /** The ids of the keys of the data directory, the new one first. */
  readonly keyIds: readonly string[]
}

export async function reencrypt({ settings, dataDir, oldId, keyIds }: ReencryptOptions) {
  try {
    return await replaceAll({ settings, dataDir, oldId, keyIds })
  } catch (error) {
    throw storeError(error, 'The secrets in the database cannot be encrypted again')
  }
}

async function replaceAll({ settings, dataDir, oldId, keyIds }: ReencryptOptions) {
  const client = await connect(settings)
  const all = async <R>(text: string, ...values: readonly unknown[]): Promise<R[]> => {
    const statement = sql(text, ...values)
    return (await client.query(statement.text, statement.values as unknown[])).rows as R[]
  }
  try {
    const box = openSecretBox(dataDir)
    const unreadable: string[] = []
    let changed = 0
    let [owner, key]: [string, Uint8Array] = ['', new Uint8Array()]
    for (;;) {
      const rows = await all<Row>(OLD_ROWS, `"enc:1:${oldId}:%`, owner, key)
      const fresh = rows.flatMap((row) => {
        const path = `secrets.${row.owner.slice('secret:'.length)}.${toText(row.key)}`
        try {
          return [{ ...row, text: JSON.stringify(box.encrypt(box.decrypt(JSON.parse(row.json), path), path)) }]
        } catch {
          unreadable.push(path)
          return []
        }
      })
      if (fresh.length > 0)
        changed += (
          await all(
            REPLACE,
            fresh.map((row) => row.owner),
            fresh.map((row) => row.key),
            fresh.map((row) => row.text),
            fresh.map((row) => row.json),
          )
        ).length
      const last = rows.at(-1)
      if (!last || rows.length < SLICE_ROWS) break
      ;[owner, key] = [last.owner, last.key]
    }
    // Machines that have only the old key do not start any more.
    if (changed === 0 && keyIds[0] !== undefined) await all(NOTE_KEY, keyIds[0])
    return { changed, unreadable }
  } finally {
    await disconnect(client)
  }
}
