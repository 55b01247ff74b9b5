/** A schema of PostgreSQL as the source or the target of a copy. */
import { AppError, type Logger, type RowSigner, refusedRows } from '@sluice/sdk'
import { COPIED_TABLES, type CopiedNumbers, type CopiedRow, type CopiedTable } from '@sluice/store/copied-tables'
import { indexedWords } from '@sluice/store/shared'
import pg from 'pg'
import {
  type All,
  type ConnectionSettings,
  connect,
  DEFAULT_SCHEMA,
  databaseName,
  disconnect,
  PUT_META,
  queryOf,
  type Row,
} from '../connection/connection.ts'
import { ACCEPTED_KEY } from '../connection/server-history.ts'
import { requireNoDaemon } from '../maintenance/no-daemon.ts'
import { signAll } from '../maintenance/sign-rows.ts'
import { demandSignatures } from '../schema/demand-signatures.ts'
import { COPY_KEY, checkKey, migrate } from '../schema/migrate.ts'
import { RowSignatures, SIGNED_KEY } from '../schema/row-signatures.ts'
import { MIGRATIONS } from '../schema/schema.ts'
import { unverifiedRows } from '../schema/unverified-rows.ts'

/** The rows of one answer while a table is read. */
const FETCH_ROWS = 500
/** The tables that a copy leaves out: who works with the database, and what belongs to this database alone. */
export const LEFT_OUT: readonly string[] = [
  'costs',
  'processes',
  'drained_nodes',
  'connections',
  'leases',
  'meta',
  'sop_audit_head',
  'calls',
  'lockouts',
  'one_time_keys',
  'event_head',
  'events',
  'revocations',
  'config',
]
export const COPIED_NAMES: readonly string[] = COPIED_TABLES.flatMap(({ name, apart }) => (apart ? [name, apart.table] : [name]))
const COLUMNS = `
  SELECT attname::text COLLATE "C" AS name, format_type(atttypid, NULL)::text COLLATE "C" AS type FROM pg_attribute
  WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`
const TABLES = 'SELECT tablename::text COLLATE "C" AS name FROM pg_tables WHERE schemaname = current_schema()'
const CONFIG = 'SELECT version, text FROM config ORDER BY version DESC LIMIT 1'
/** Replies of which a part was numbered between the parts of another one: the embedded database relies on consecutive numbers. */
const MIXED_PARTS = `
  SELECT count(*)::int AS count FROM (SELECT 1 FROM outbox WHERE reply IS NOT NULL AND ended_at IS NULL
    GROUP BY reply HAVING max(number) - min(number) <> max(part) - min(part)) AS mixed`

export interface PostgresCopyOptions {
  readonly settings: ConnectionSettings
  readonly log: Logger
  readonly nowMs: number
  readonly keyIds: readonly string[]
  readonly signer?: RowSigner | undefined
}

interface Column {
  readonly name: string
  readonly type: string
}

class Schema {
  readonly client: pg.Client
  readonly all: All
  readonly #columns = new Map<string, readonly Column[]>()

  constructor(client: pg.Client) {
    this.client = client
    this.all = queryOf(client)
  }

  async get<R = Row>(text: string, ...values: readonly unknown[]): Promise<R | undefined> {
    return (await this.all<R>(text, ...values))[0]
  }

  /** With the column that is in a table of its own. */
  async columnsOf({ name, apart, leftOut = [] }: CopiedTable): Promise<readonly Column[]> {
    const known = async () => (await this.all<Column>(COLUMNS, name)).filter((column) => !leftOut.includes(column.name))
    const own = async () => [...(await known()), ...(apart ? [{ name: apart.column, type: apart.type }] : [])]
    const columns = this.#columns.get(name) ?? (await own())
    this.#columns.set(name, columns)
    return columns
  }

  async count({ name }: CopiedTable): Promise<number> {
    return (await this.get<{ count: number }>(`SELECT count(*) AS count FROM ${name}`))?.count ?? 0
  }

  /** Yields all rows in the order of the key, or those after a key, from one state of the data. Needs a transaction. */
  async *rows(table: CopiedTable, after?: readonly unknown[]): AsyncGenerator<CopiedRow> {
    const columns = (await this.columnsOf(table)).filter(({ name }) => !table.computed?.includes(name))
    const key = await this.keyOf(table)
    const condition = after ? `WHERE (${key.join(', ')}) > (${after.map((_, at) => `$${at + 1}`).join(', ')})` : ''
    const names = columns.map(({ name }) => `"${name}"`).join(', ')
    const from = table.apart ? `${table.name} LEFT JOIN ${table.apart.table} USING (${table.key.join(', ')})` : table.name
    await this.all(
      `DECLARE copied NO SCROLL CURSOR FOR SELECT ${names} FROM ${from} ${condition} ORDER BY ${key.join(', ')}`,
      ...(after ?? []),
    )
    try {
      for (;;) {
        const rows = await this.all<CopiedRow>(`FETCH ${FETCH_ROWS} FROM copied`)
        yield* rows
        if (rows.length < FETCH_ROWS) return
      }
    } finally {
      await this.all('CLOSE copied').catch(() => undefined)
    }
  }

  /** The key in the order of the embedded database, which compares texts by code point. */
  async keyOf(table: CopiedTable): Promise<readonly string[]> {
    const columns = await this.columnsOf(table)
    return table.key.map((key) => (columns.find(({ name }) => name === key)?.type === 'text' ? `"${key}" COLLATE "C"` : `"${key}"`))
  }
}

async function openSchema({ settings }: Pick<PostgresCopyOptions, 'settings'>): Promise<Schema> {
  const client = await connect(settings, { isPatient: true })
  // The other side of the copy may take its time between two statements.
  await client.query('SET idle_in_transaction_session_timeout = 0; SET client_connection_check_interval = 0')
  return new Schema(client)
}

export class PostgresSource {
  readonly #schema: Schema

  /** Rejects with `conflict` while a daemon works with the database, and with `not_found` for a schema without data. */
  static async open(options: PostgresCopyOptions): Promise<PostgresSource> {
    const schema = await openSchema(options)
    try {
      if ((await schema.get<{ known: boolean }>("SELECT to_regclass('meta') IS NOT NULL AS known"))?.known !== true)
        throw new AppError('not_found', `The database has no schema ${options.settings.schema ?? DEFAULT_SCHEMA} with data of Sluice.`)
      const meta = new Map(
        (await schema.all<{ key: string; value: string }>('SELECT key, value FROM meta')).map(({ key, value }) => [key, value]),
      )
      if (meta.has(COPY_KEY)) throw new AppError('conflict', 'The schema is an unfinished copy itself. Finish it first.')
      if (meta.get('schema_version') !== String(MIGRATIONS.length))
        throw new AppError(
          'unavailable',
          'The schema is of another release. Start the daemon of this release once, stop it, and try again.',
        )
      checkKey(meta.get('key_id'), options.keyIds)
      await requireNoDaemon(schema)
      // The copy and its verification read the same snapshot.
      await schema.all('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
      await requireVerified(schema, options, meta.get(SIGNED_KEY))
      const mixed = (await schema.get<{ count: number }>(MIXED_PARTS))?.count ?? 0
      if (mixed > 0)
        throw new AppError(
          'conflict',
          `${mixed} waiting replies of several parts were queued at the same time by several nodes. Start a daemon until they are sent, and try again.`,
        )
      return new PostgresSource(schema)
    } catch (error) {
      await disconnect(schema.client)
      throw error
    }
  }

  private constructor(schema: Schema) {
    this.#schema = schema
  }

  async unknownTables(): Promise<readonly string[]> {
    const known = new Set([...COPIED_NAMES, ...LEFT_OUT])
    return (await this.#schema.all<{ name: string }>(TABLES)).map(({ name }) => name).filter((name) => !known.has(name))
  }

  async columns(table: CopiedTable): Promise<readonly string[]> {
    return (await this.#schema.columnsOf(table)).map(({ name }) => name)
  }

  count(table: CopiedTable): Promise<number> {
    return this.#schema.count(table)
  }

  rows(table: CopiedTable, after?: readonly unknown[]): AsyncIterable<CopiedRow> {
    return this.#schema.rows(table, after)
  }

  async numbers(): Promise<CopiedNumbers> {
    const highest: [string, number][] = []
    for (const { name } of COPIED_TABLES.filter(({ neverReuses }) => neverReuses)) {
      const sequence = await this.#schema.get<{ name: string }>("SELECT pg_get_serial_sequence($1, 'number') AS name", name)
      const last = await this.#schema.get<{ last: number }>(
        `SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last FROM ${sequence?.name}`,
      )
      highest.push([name, last?.last ?? 0])
    }
    const head = await this.#schema.get<{ number: number }>('SELECT number FROM sop_audit_head')
    const upgraded = await this.#schema.get<{ value: string }>("SELECT value FROM meta WHERE key = 'upgraded_at'")
    return { highest: Object.fromEntries(highest), audit: head?.number ?? 0, upgradedAtMs: upgraded ? Number(upgraded.value) : null }
  }

  /** The newest version. */
  async clusterConfig(): Promise<{ readonly version: number; readonly text: string } | null> {
    return (await this.#schema.get<{ version: number; text: string }>(CONFIG)) ?? null
  }

  /** Rejects with `conflict` if a daemon has begun to work with the database since. */
  async settle(): Promise<void> {
    await this.#schema.all('COMMIT')
    await requireNoDaemon(this.#schema)
  }

  close(): Promise<void> {
    return disconnect(this.#schema.client)
  }
}

export class PostgresTarget {
  readonly #schema: Schema
  readonly #options: PostgresCopyOptions

  /**
   * Creates the tables, or goes on with an unfinished copy of the same source. Rejects with `conflict` when the schema has data. No
   * daemon uses the schema before `finish`.
   */
  static async open(options: PostgresCopyOptions & { readonly source: string; readonly restart: boolean }): Promise<PostgresTarget> {
    const { settings, source, restart } = options
    const schema = await openSchema(options)
    const name = settings.schema ?? DEFAULT_SCHEMA
    try {
      const known = await schema.get<{ known: boolean }>("SELECT to_regclass('meta') IS NOT NULL AS known")
      const marked = known?.known
        ? (await schema.get<{ value: string }>('SELECT value FROM meta WHERE key = $1', COPY_KEY))?.value
        : undefined
      if (marked !== undefined && marked !== source && !restart)
        throw new AppError(
          'conflict',
          `The schema ${name} is an unfinished copy of ${marked}. Start again with --restart to throw it away.`,
        )
      await migrate({ ...options, isCopy: true })
      await requireNoDaemon(schema)
      if (marked === undefined) await requireEmpty(schema, name)
      if (restart && marked !== undefined) {
        await schema.all(`DROP SCHEMA ${pg.escapeIdentifier(name)} CASCADE`)
        await migrate({ ...options, isCopy: true })
      }
      await schema.all(PUT_META, COPY_KEY, source)
      return new PostgresTarget(schema, options)
    } catch (error) {
      await disconnect(schema.client)
      throw error
    }
  }

  private constructor(schema: Schema, options: PostgresCopyOptions) {
    this.#schema = schema
    this.#options = options
  }

  async columns(table: CopiedTable): Promise<readonly string[]> {
    return (await this.#schema.columnsOf(table)).map(({ name }) => name)
  }

  async last(table: CopiedTable): Promise<readonly unknown[] | undefined> {
    const key = await this.#schema.keyOf(table)
    const names = table.key.map((name) => `"${name}"`).join(', ')
    const order = key.map((column) => `${column} DESC`).join(', ')
    const row = await this.#schema.get<Record<string, unknown>>(`SELECT ${names} FROM ${table.name} ORDER BY ${order} LIMIT 1`)
    return row && table.key.map((column) => row[column])
  }

  async write(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void> {
    const { name: into, apart, computed = [] } = table
    const columns = await this.#schema.columnsOf(table)
    const own = columns.filter(({ name }) => name !== apart?.column)
    const list = (of: readonly Column[]): string => of.map(({ name }) => `"${name}"`).join(', ')
    const parameters = columns.map(({ name, type }, at) => `$${at + 1}::${computed.includes(name) ? 'text' : type}[]`).join(', ')
    const values = own.map(({ name }) => (computed.includes(name) ? `to_tsvector('simple', given."${name}")` : `given."${name}"`))
    const always = columns.some(({ name }) => name === 'number') ? 'OVERRIDING SYSTEM VALUE' : ''
    const bodies = apart
      ? `, bodies AS (INSERT INTO ${apart.table} (${table.key.join(', ')}, ${apart.column})
          SELECT ${table.key.join(', ')}, ${apart.column} FROM given WHERE ${apart.column} IS NOT NULL)`
      : ''
    await this.#schema.all(
      `WITH given AS (SELECT * FROM unnest(${parameters}) AS given (${list(columns)}))${bodies}
       INSERT INTO ${into} (${list(own)}) ${always} SELECT ${values.join(', ')} FROM given`,
      ...columns.map(({ name }) =>
        rows.map((row) => (computed.includes(name) ? indexedWords(String(row.key), String(row.content)) : row[name])),
      ),
    )
  }

  count(table: CopiedTable): Promise<number> {
    return this.#schema.count(table)
  }

  async *rows(table: CopiedTable): AsyncGenerator<CopiedRow> {
    await this.#schema.all('BEGIN READ ONLY')
    try {
      yield* this.#schema.rows(table)
    } finally {
      await this.#schema.all('COMMIT')
    }
  }

  async setNumbers({ highest, audit, upgradedAtMs }: CopiedNumbers): Promise<void> {
    for (const [table, last] of Object.entries(highest))
      if (last > 0) await this.#schema.all("SELECT setval(pg_get_serial_sequence($1, 'number'), $2)", table, last)
    const head = "coalesce((SELECT hash FROM sop_audit WHERE number = (SELECT max(number) FROM sop_audit)), repeat('0', 64))"
    await this.#schema.all(`UPDATE sop_audit_head SET number = $1, hash = ${head}`, audit)
    if (upgradedAtMs !== null) await this.#schema.all(PUT_META, 'upgraded_at', String(upgradedAtMs))
  }

  /** Lets daemons use the schema. */
  async finish(): Promise<void> {
    const { signer, nowMs } = this.#options
    const { all } = this.#schema
    await signAll(all, signaturesOf(this.#options))
    if (signer) await demandSignatures(all, signer, nowMs)
    // A daemon may have seen other data in this schema, before the copy.
    await this.#schema.all(PUT_META, ACCEPTED_KEY, String(nowMs))
    await this.#schema.all('DELETE FROM meta WHERE key = $1', COPY_KEY)
    await this.#schema.all('ANALYZE')
  }

  close(): Promise<void> {
    return disconnect(this.#schema.client)
  }
}

const signaturesOf = ({ settings, signer, log }: PostgresCopyOptions): RowSignatures =>
  new RowSignatures({ signer, database: databaseName(settings), log })

/** In the embedded database, every row counts. */
async function requireVerified(schema: Schema, options: PostgresCopyOptions, marker: string | undefined): Promise<void> {
  const signatures = signaturesOf(options)
  signatures.learn(marker)
  const unverified = await unverifiedRows(schema.all, signatures)
  const [refused, ...more] = refusedRows({ isDemanded: signatures.isDemanded, unverified })
  if (refused)
    throw new AppError(
      'conflict',
      `Rows of the database are refused: ${[refused, ...more.slice(0, 4)].map(({ name }) => name).join(', ')}${more.length > 4 ? ', …' : ''}. Look at them, and sign or remove them: sluice cluster sign.`,
    )
}

async function requireEmpty(schema: Schema, name: string): Promise<void> {
  for (const table of COPIED_TABLES) {
    const row = await schema.get(`SELECT 1 FROM ${table.name} LIMIT 1`)
    if (row)
      throw new AppError(
        'conflict',
        `The schema ${name} has data already (${table.name}). Choose another one with [store] schema, or drop it.`,
      )
  }
}
