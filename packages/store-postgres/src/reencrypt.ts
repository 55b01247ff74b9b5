/** Encrypts the secrets of features in the database with a new key, in small transactions, while daemons may run. */
import { AppError } from '@sluice/sdk'
import { openSecretBox, secretKeyIds } from '@sluice/store/secret-box'
import { toText } from '@sluice/store/shared'
import { type ConnectionSettings, connect, disconnect, sql } from './connection.ts'
import { TTL_MS } from './leases.ts'
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
const OTHERS = `
  SELECT DISTINCT node FROM processes WHERE place <> $1 AND beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond' ORDER BY node`
const NOTE_KEY = "UPDATE meta SET value = $1 WHERE key = 'key_id'"

interface Row {
  readonly owner: string
  readonly key: Uint8Array
  readonly json: string
}

export interface ReencryptOptions {
  readonly settings: ConnectionSettings
  readonly dataDir: string
  /** Null: nothing is changed. */
  readonly oldId: string | null
  /** The name of this machine: its own daemon reads the key file again, and those of other machines do not have the new key. */
  readonly node: string
}

/** Rejects with `conflict` while daemons of other machines run, which could not read what the new key encrypts. */
export async function reencrypt(options: ReencryptOptions): Promise<{ changed: number; unreadable: string[] }> {
  try {
    return await replaceAll(options)
  } catch (error) {
    throw storeError(error, 'The secrets in the database cannot be encrypted again')
  }
}

async function replaceAll({ settings, dataDir, oldId, node }: ReencryptOptions) {
  const client = await connect(settings)
  const all = async <R>(text: string, ...values: readonly unknown[]): Promise<R[]> => {
    const statement = sql(text, ...values)
    return (await client.query(statement.text, statement.values as unknown[])).rows as R[]
  }
  try {
    const others = await all<{ node: string }>(OTHERS, node)
    if (others.length > 0)
      throw new AppError(
        'conflict',
        `Other daemons work with the database and have only the old key: ${others.map((other) => other.node).join(', ')}. Stop them, rotate the key, copy secret.key to their data directories, and start them again.`,
      )
    const unreadable: string[] = []
    if (oldId === null) return { changed: 0, unreadable }
    const box = openSecretBox(dataDir)
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
    if (changed === 0) await all(NOTE_KEY, secretKeyIds(dataDir)[0] ?? '')
    return { changed, unreadable }
  } finally {
    await disconnect(client)
  }
}
