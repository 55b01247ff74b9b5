/** Encrypts the secrets of features in the database with a new key, in small transactions, while daemons may run. */
import { AppError, type Logger, type RowSigner } from '@sluice/sdk'
import { openSecretBox, secretKeyIds } from '@sluice/store/secret-box'
import { toText } from '@sluice/store/shared'
import { TTL_MS } from '../cluster/membership.ts'
import {
  type All,
  type ConnectionSettings,
  connect,
  databaseName,
  disconnect,
  metaOf,
  queryOf,
  type Row,
} from '../connection/connection.ts'
import { storeError } from '../connection/postgres-error.ts'
import { RowSignatures, readMarker, SIGNED_KEY, writeMarker } from '../schema/row-signatures.ts'
import { SIGNED_NAMES } from '../schema/signed-tables.ts'
import { pagesOf, signRead } from '../schema/unverified-rows.ts'

const SLICE_ROWS = 100
// Owners of secrets begin with 'secret:', as runtime/src/features/host.ts names them.
const OLD_ROWS = `
  SELECT owner, key, value_json, hmac FROM key_values
  WHERE owner >= 'secret:' AND owner < 'secret;' AND value_json LIKE $1 AND (owner, key) > ($2, $3) ORDER BY owner, key LIMIT ${SLICE_ROWS}`
const REPLACE = `
  UPDATE key_values SET value_json = fresh.json, hmac = fresh.hmac
  FROM unnest($1::text[], $2::bytea[], $3::text[], $4::text[], $5::text[]) AS fresh (owner, key, json, old, hmac)
  WHERE key_values.owner = fresh.owner AND key_values.key = fresh.key AND value_json = fresh.old RETURNING 1`
const OTHERS = `
  SELECT DISTINCT node FROM processes WHERE place <> $1 AND beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond' ORDER BY node`
const NOTE_KEY = "UPDATE meta SET value = $1 WHERE key = 'key_id'"

interface SecretRow extends Row {
  readonly owner: string
  readonly key: Uint8Array
  readonly value_json: string
  readonly hmac: string | null
}

export interface ReencryptOptions {
  readonly settings: ConnectionSettings
  readonly dataDir: string
  /** Null: nothing is changed. */
  readonly oldId: string | null
  /** The name of this machine: its own daemon reads the key file again, and the daemons of other machines do not have the new key. */
  readonly node: string
  readonly signer?: RowSigner | undefined
  readonly log: Logger
}

/** Rejects with `conflict` while daemons of other machines run, which could not read what the new key encrypts. */
export async function reencrypt(options: ReencryptOptions): Promise<{ changed: number; unreadable: string[] }> {
  try {
    return await replaceAll(options)
  } catch (error) {
    throw storeError(error, 'The secrets in the database cannot be encrypted again')
  }
}

async function replaceAll({ settings, dataDir, oldId, node, signer, log }: ReencryptOptions) {
  const client = await connect(settings)
  const all = queryOf(client)
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
    const signatures = new RowSignatures({ signer, database: databaseName(settings), log })
    let changed = 0
    let [owner, key]: [string, Uint8Array] = ['', new Uint8Array()]
    for (;;) {
      const rows = await all<SecretRow>(OLD_ROWS, `"enc:1:${oldId}:%`, owner, key)
      const fresh = rows.flatMap((row) => {
        const path = `secrets.${row.owner.slice('secret:'.length)}.${toText(row.key)}`
        try {
          const text = JSON.stringify(box.encrypt(box.decrypt(JSON.parse(row.value_json), path), path))
          // A row without a right HMAC keeps what it has.
          const hmac =
            signatures.faultOf('key_values', row) === undefined ? signatures.of('key_values', { ...row, value_json: text }) : row.hmac
          return [{ ...row, text, hmac }]
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
            fresh.map((row) => row.value_json),
            fresh.map((row) => row.hmac),
          )
        ).length
      const last = rows.at(-1)
      if (!last || rows.length < SLICE_ROWS) break
      ;[owner, key] = [last.owner, last.key]
    }
    changed += await signAgain(all, signatures, { signer, oldId })
    // Machines that have only the old key do not start any more.
    if (changed === 0) await all(NOTE_KEY, secretKeyIds(dataDir)[0] ?? '')
    return { changed, unreadable }
  } finally {
    await disconnect(client)
  }
}

/** Signs what the old key has signed with the new one. Resolves to the number of changed rows. A row with a wrong HMAC keeps it. */
async function signAgain(
  all: All,
  signatures: RowSignatures,
  { signer, oldId }: { readonly signer: RowSigner | undefined; readonly oldId: string },
): Promise<number> {
  if (!signer) return 0
  let changed = 0
  for (const table of SIGNED_NAMES)
    for await (const rows of pagesOf(all, table, `hmac LIKE '${oldId}:%'`))
      changed += await signRead(
        all,
        table,
        rows.filter((row) => signatures.faultOf(table, row) === undefined),
        signatures,
      )
  const marker = (await metaOf(all)).get(SIGNED_KEY)
  const signed = marker === undefined ? undefined : readMarker(marker, signer)
  if (!signed || !marker?.includes(`"${oldId}:`)) return changed
  await all("UPDATE meta SET value = $1 WHERE key = 'signed'", writeMarker(signed, signer))
  return changed + 1
}
