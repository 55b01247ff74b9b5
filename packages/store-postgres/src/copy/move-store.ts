/**
 * Copies everything between the embedded database and PostgreSQL. Each table is copied in the order of its key, in batches of one
 * commit each, so that an interrupted copy goes on after the last key of the target. At the end both databases are read again and compared.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { AppError, type StoreMove, type StoreMoveOptions } from '@sluice/sdk'
import { COPIED_TABLES, type CopiedNumbers, type CopiedRow, type CopiedTable, sharedColumns } from '@sluice/store/copied-tables'
import { openSecretBox } from '@sluice/store/secret-box'
import { type AuditRecord, toText, verifyRecords } from '@sluice/store/shared'
import { SqliteSource } from '@sluice/store/sqlite-source'
import { SqliteTarget } from '@sluice/store/sqlite-target'
import { databaseName } from '../connection/connection.ts'
import { storeError } from '../connection/postgres-error.ts'
import { type PostgresCopyOptions, PostgresSource, PostgresTarget } from './postgres-copy.ts'

const ROWS_MAX = 500
const BYTES_MAX = 4 * 1024 * 1024
const FILE = 'sluice.db'
const SECRETS = 'secret:'

type MaybePromise<T> = T | Promise<T>
type Rows = Iterable<CopiedRow> | AsyncIterable<CopiedRow>

interface Source {
  unknownTables(): MaybePromise<readonly string[]>
  columns(table: CopiedTable): MaybePromise<readonly string[]>
  count(table: CopiedTable): MaybePromise<number>
  rows(table: CopiedTable, after: readonly unknown[] | undefined): Rows
  numbers(): MaybePromise<CopiedNumbers>
  clusterConfig?(): Promise<StoreMove['clusterConfig']>
  settle?(): Promise<void>
  close(): MaybePromise<void>
}

interface Target {
  columns(table: CopiedTable): MaybePromise<readonly string[]>
  last(table: CopiedTable): MaybePromise<readonly unknown[] | undefined>
  write(table: CopiedTable, rows: readonly CopiedRow[]): MaybePromise<void>
  count(table: CopiedTable): MaybePromise<number>
  rows(table: CopiedTable): Rows
  setNumbers(numbers: CopiedNumbers): MaybePromise<void>
  finish(): MaybePromise<void>
  close(): MaybePromise<void>
}

/**
 * The caller holds the lock of the data directory. Rejects with `conflict` while a daemon works with the server, for a target with data,
 * and when the source has changed since the interrupted attempt that this one goes on with.
 */
export async function moveStore(options: StoreMoveOptions): Promise<StoreMove> {
  try {
    const source = await openSource(options)
    try {
      const target = await openTarget(options)
      try {
        return await move(source, target, options)
      } finally {
        await target.close()
      }
    } finally {
      await source.close()
    }
  } catch (error) {
    if (error instanceof AppError || options.signal.aborted) throw error
    throw storeError(error, 'The data cannot be moved')
  }
}

const postgresOptions = ({ url, schema, tls, caFile, connectMs, log, clock, keyIds, signer }: StoreMoveOptions): PostgresCopyOptions => ({
  settings: { url, schema, tls, connectMs, ...(caFile !== undefined && { caFile }) },
  log,
  keyIds,
  signer,
  nowMs: clock.nowMs(),
})

const openSource = (options: StoreMoveOptions): MaybePromise<Source> =>
  options.to === 'server'
    ? new SqliteSource({ file: join(options.dataDir, FILE), nowMs: options.clock.nowMs(), log: options.log })
    : PostgresSource.open(postgresOptions(options))

const openTarget = (options: StoreMoveOptions): MaybePromise<Target> => {
  const file = join(options.dataDir, FILE)
  const { restart, log, clock } = options
  if (options.to === 'server') return PostgresTarget.open({ ...postgresOptions(options), source: file, restart })
  return new SqliteTarget({ file, source: databaseName(options), restart, nowMs: clock.nowMs(), log })
}

async function move(source: Source, target: Target, options: StoreMoveOptions): Promise<StoreMove> {
  const unknown = await source.unknownTables()
  if (unknown.length > 0) throw new AppError('unavailable', `This release does not know how to move ${unknown.join(', ')}.`)
  const counts = new Map<string, number>()
  for (const table of COPIED_TABLES) counts.set(table.name, await source.count(table))
  const rowsTotal = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const columns = new Map<CopiedTable, readonly string[]>()
  for (const table of COPIED_TABLES) columns.set(table, await columnsOf(table, source, target))

  let done = 0
  const note = (phase: 'copy' | 'verify', table: CopiedTable, rows: number): void => {
    options.signal.throwIfAborted()
    done += rows
    options.onProgress({ phase, table: table.name, rows: done, rowsTotal })
  }
  let resumedRows = 0
  for (const table of COPIED_TABLES) {
    const after = await target.last(table)
    if (after) {
      const copied = await target.count(table)
      resumedRows += copied
      note('copy', table, copied)
    }
    for await (const batch of batches(source.rows(table, after))) {
      await target.write(table, batch)
      note('copy', table, batch.length)
    }
  }
  await target.setNumbers(await source.numbers())

  done = 0
  const tables = []
  for (const table of COPIED_TABLES) {
    const names = columns.get(table) ?? []
    const before = await checksum(source.rows(table, undefined), names)
    const after = await checksum(target.rows(table), names, () => note('verify', table, 1))
    if (before.rows !== after.rows || before.sha256 !== after.sha256)
      throw new AppError(
        'conflict',
        `The copy of ${table.name} differs: ${after.rows} rows, and ${before.rows} in the source. If the source has changed since an interrupted attempt, start again with --restart. The source is unchanged.`,
      )
    tables.push({ name: table.name, ...after })
  }
  const audit = await auditOf(source, target)
  const secrets = await secretsOf(target, options.dataDir)
  const clusterConfig = (await source.clusterConfig?.()) ?? null
  await source.settle?.()
  await target.finish()
  return { tables, resumedRows, ...secrets, ...audit, clusterConfig }
}

/** The columns that both databases store. Throws when a column would be lost. */
async function columnsOf(table: CopiedTable, source: Source, target: Target): Promise<readonly string[]> {
  const [from, to] = [sharedColumns(table, await source.columns(table)), sharedColumns(table, await target.columns(table))]
  const lost = from.filter((name) => !to.includes(name))
  if (lost.length > 0) throw new AppError('unavailable', `This release does not know how to move ${table.name}.${lost.join(', ')}.`)
  return from.toSorted()
}

async function* batches(rows: Rows): AsyncGenerator<readonly CopiedRow[]> {
  let batch: CopiedRow[] = []
  let bytes = 0
  for await (const row of rows) {
    batch.push(row)
    bytes += sizeOf(row)
    if (batch.length < ROWS_MAX && bytes < BYTES_MAX) continue
    yield batch
    batch = []
    bytes = 0
  }
  if (batch.length > 0) yield batch
}

const sizeOf = (row: CopiedRow): number =>
  Object.values(row).reduce<number>((sum, value) => sum + (typeof value === 'object' && value ? value.length : String(value).length), 0)

/** Reads all rows in the order of their key. */
async function checksum(rows: Rows, names: readonly string[], onRow?: () => void): Promise<{ rows: number; sha256: string }> {
  const hash = createHash('sha256')
  let count = 0
  for await (const row of rows) {
    hash.update(JSON.stringify(names.map((name) => plain(row[name]))))
    count++
    onRow?.()
  }
  return { rows: count, sha256: hash.digest('hex') }
}

const plain = (value: CopiedRow[string] | undefined): unknown =>
  typeof value === 'object' && value ? { bytes: Buffer.from(value).toString('base64') } : value

/** Verifies the chain of the audit log in both databases. */
async function auditOf(source: Source, target: Target): Promise<Pick<StoreMove, 'auditRecords' | 'auditFault'>> {
  const table = COPIED_TABLES.find(({ name }) => name === 'sop_audit')
  if (!table) return { auditRecords: 0, auditFault: null }
  const { audit } = await source.numbers()
  const [before, after] = [await verified(source.rows(table, undefined), audit), await verified(target.rows(table), audit)]
  if (before.head !== after.head || before.broken?.why !== after.broken?.why)
    throw new AppError('conflict', `The audit log of the copy does not verify: ${after.broken?.why ?? 'its last record differs'}`)
  return { auditRecords: after.records, auditFault: after.broken?.why ?? null }
}

async function verified(rows: Rows, last: number): ReturnType<typeof verifyRecords> {
  const records = toIterator(rows)
  return verifyRecords({
    lastNumber: () => last,
    async page(_, limit) {
      const page: AuditRecord[] = []
      while (page.length < limit) {
        const { done, value } = await records.next()
        if (done) break
        page.push({ ...value, atMs: value.at, detailJson: value.detail_json } as unknown as AuditRecord)
      }
      return page
    },
  })
}

async function* toIterator(rows: Rows): AsyncGenerator<CopiedRow> {
  yield* rows
}

/** Decrypts every secret of the copy with the key of the data directory. */
async function secretsOf(target: Target, dataDir: string): Promise<Pick<StoreMove, 'secrets' | 'unreadableSecrets'>> {
  const table = COPIED_TABLES.find(({ name }) => name === 'key_values')
  const box = openSecretBox(dataDir)
  let secrets = 0
  const unreadableSecrets: string[] = []
  for await (const { owner, key, value_json: json } of table ? target.rows(table) : []) {
    if (typeof owner !== 'string' || !owner.startsWith(SECRETS) || !(key instanceof Uint8Array)) continue
    const path = `secrets.${owner.slice(SECRETS.length)}.${toText(key)}`
    try {
      box.decrypt(JSON.parse(String(json)), path)
      secrets++
    } catch {
      unreadableSecrets.push(path)
    }
  }
  return { secrets, unreadableSecrets }
}
