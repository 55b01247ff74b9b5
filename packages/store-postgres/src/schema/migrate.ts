/**
 * Brings the schema up to this release. Any number of processes may do so at once: an advisory lock lets one through at a time.
 * Releases N and N-1 may use one database. `min_reader` is the oldest schema version whose releases can still use it.
 */
import { AppError, type Logger, type RowSigner } from '@sluice/sdk'
import pg from 'pg'
import { refuseTransactionPooler } from '../connection/check-pooler.ts'
import { type ConnectionSettings, connect, DEFAULT_SCHEMA, disconnect, metaOf, PUT_META, queryOf } from '../connection/connection.ts'
import { demandSignatures } from './demand-signatures.ts'
import { SIGNED_KEY } from './row-signatures.ts'
import { MIGRATIONS, type Migration } from './schema.ts'

/** The lock of migrations, as two arbitrary numbers and the hash of the schema's name. */
const LOCK = 'SELECT pg_advisory_lock(7350, hashtext($1))'
const UNLOCK = 'SELECT pg_advisory_unlock(7350, hashtext($1))'
const META = 'CREATE TABLE IF NOT EXISTS meta (key text PRIMARY KEY, value text NOT NULL)'
const OLDER = `
  SELECT count(*)::int AS count FROM processes WHERE schema_version < $1 AND beat_at > clock_timestamp() - interval '60 seconds'`

/** The key in `meta` that marks an unfinished copy and names its source. */
export const COPY_KEY = 'copy_of'

export interface MigrateOptions {
  readonly settings: ConnectionSettings
  readonly log: Logger
  readonly nowMs: number
  /** The ids of the keys for secrets, the one that encrypts first; empty while this process has none. */
  readonly keyIds: readonly string[]
  /** Creates the key of a database that has none. A database without data demands its HMACs from the start. */
  readonly signer?: RowSigner | undefined
  /** True: the caller fills the schema with a copy, which no other process may use before it is finished. */
  readonly isCopy?: boolean
  /** The migrations of this release; for tests. */
  readonly migrations?: readonly Migration[]
}

export interface Migrated {
  /** The time at which data of an earlier release was upgraded; null when it never was. */
  readonly upgradedAtMs: number | null
  /** The id of the key for secrets; undefined without one. */
  readonly keyId: string | undefined
  /** What `meta` says about signed rows. */
  readonly signed: string | undefined
}

/**
 * Throws `data_newer` for a schema that only newer releases can use, and `config_invalid` when other processes use another key for
 * secrets.
 */
export async function migrate(options: MigrateOptions): Promise<Migrated> {
  const { settings } = options
  const schema = settings.schema ?? DEFAULT_SCHEMA
  const client = await connect(settings, { isPatient: true })
  try {
    await refuseTransactionPooler(client, settings)
    await client.query(LOCK, [schema])
    try {
      return await migrateLocked(client, schema, options)
    } finally {
      await client.query(UNLOCK, [schema])
    }
  } finally {
    await disconnect(client)
  }
}

async function migrateLocked(client: pg.Client, schema: string, options: MigrateOptions): Promise<Migrated> {
  const { log, nowMs, keyIds, signer, isCopy = false, migrations = MIGRATIONS } = options
  const known = await client.query("SELECT to_regclass('meta') IS NOT NULL AS known")
  if (!known.rows[0]?.known) {
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${pg.escapeIdentifier(schema)}`)
    await client.query(META)
  }
  const all = queryOf(client)
  const meta = await metaOf(all)
  const version = Number(meta.get('schema_version') ?? 0)
  const minReader = Number(meta.get('min_reader') ?? 0)
  if (minReader > migrations.length) {
    throw new AppError(
      'data_newer',
      `The database is used by a newer release (schema ${version}; this release supports up to ${migrations.length}). Start that release here, too.`,
    )
  }
  checkKey(meta.get('key_id'), keyIds)
  const copyOf = meta.get(COPY_KEY)
  if (copyOf !== undefined && !isCopy) {
    throw new AppError('unavailable', `The database is an unfinished copy of ${copyOf}. Finish it: sluice store migrate --to postgres`)
  }
  if (version > 0 && version < migrations.length) log.info('upgrading the database', { from: version, schema: migrations.length })
  for (const [at, migration] of migrations.entries()) {
    if (at < version) continue
    if (migration.contracts !== undefined && (await client.query(OLDER, [migration.contracts])).rows[0]?.count > 0) {
      log.info('the upgrade of the database goes on once the processes of older releases have ended', { schema: at + 1 })
      break
    }
    await step(client, migration, { number: at + 1, upgradedAtMs: version > 0 ? nowMs : undefined })
  }
  // Under the lock of migrations: machines that each created a key could not read each other's secrets.
  const keyId = keyIds[0] ?? signer?.keyId()
  if (keyId !== undefined) await client.query(PUT_META, ['key_id', keyId])
  if (version === 0 && !isCopy && signer) await demandSignatures(all, signer, nowMs)
  const now = await metaOf(all)
  const upgraded = now.get('upgraded_at')
  return { upgradedAtMs: upgraded === undefined ? null : Number(upgraded), keyId, signed: now.get(SIGNED_KEY) }
}

/** A crash leaves either the old schema or the new one. */
async function step(
  client: pg.Client,
  { sql, fill, contracts }: Migration,
  { number, upgradedAtMs }: { number: number; upgradedAtMs: number | undefined },
) {
  await client.query('BEGIN')
  try {
    await client.query(sql)
    await fill?.(queryOf(client))
    await client.query(PUT_META, ['schema_version', String(number)])
    if (contracts !== undefined || number === 1) await client.query(PUT_META, ['min_reader', String(contracts ?? number)])
    if (upgradedAtMs !== undefined) await client.query(PUT_META, ['upgraded_at', String(upgradedAtMs)])
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined)
    throw error
  }
}

/** Secrets that one process encrypts must be readable for all. While a key is rotated, a process has two. */
export function checkKey(stored: string | undefined, own: readonly string[]): void {
  if (stored === undefined || own.includes(stored)) return
  const found = own[0] === undefined ? 'this data directory has no secret.key' : `secret.key of this data directory is the key ${own[0]}`
  throw new AppError(
    'config_invalid',
    `The secrets in the database are encrypted with the key ${stored}, but ${found}. Copy secret.key from the data directory that used the database first.`,
  )
}
