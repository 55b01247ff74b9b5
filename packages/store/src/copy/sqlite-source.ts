/** Reads the tables of an embedded database for a copy, without changing the file. */
import { copyFileSync, existsSync, rmSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue, type SQLOutputValue } from 'node:sqlite'
import { AppError, type Logger } from '@sluice/sdk'
import { Database, defineFunctions } from '../connection/database.ts'
import { migrate } from '../schema/migrate.ts'
import { MIGRATIONS } from '../schema/schema.ts'
import { COPIED_TABLES, type CopiedNumbers, type CopiedRow, type CopiedTable, LEFT_OUT_TABLES } from './copied-tables.ts'

const BUSY_MS_MAX = 5000
const SEQUENCES = 'SELECT name, seq FROM sqlite_sequence'
const UPGRADED = 'SELECT max(at) AS at FROM upgrades'
const COLUMNS = 'SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0 ORDER BY cid'
/** The tables, except the tables of an index over words, which belong to another table. */
const TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'memory\\_words%' ESCAPE '\\'"

export interface SqliteSourceOptions {
  readonly file: string
  readonly nowMs: number
  readonly log: Logger
}

export class SqliteSource {
  readonly #db: DatabaseSync
  readonly #copy: string | undefined

  /**
   * A file of an earlier release is copied next to itself, and the copy is upgraded. The caller holds the lock of the data directory.
   * Throws `not_found` without a file, and `unavailable` for a file that is damaged or of a newer release.
   */
  constructor(options: SqliteSourceOptions) {
    const { file } = options
    if (!existsSync(file)) throw new AppError('not_found', `There is no database ${file}.`)
    const version = versionOf(file)
    this.#copy = version === MIGRATIONS.length ? undefined : upgradedCopy(options)
    this.#db = new DatabaseSync(this.#copy ?? file, { readOnly: true, timeout: BUSY_MS_MAX })
    // One state of the data for the whole copy.
    this.#db.exec('BEGIN')
    defineFunctions(this.#db)
    const faults = (this.#db.prepare('PRAGMA quick_check(5)').all() as { quick_check: string }[]).filter((row) => row.quick_check !== 'ok')
    if (faults.length > 0) throw new AppError('unavailable', `${file} is damaged: ${faults.map((row) => row.quick_check).join('; ')}`)
  }

  /** Names tables that hold data and that a copy does not know. */
  unknownTables(): readonly string[] {
    const known = new Set([...COPIED_TABLES.map(({ name }) => name), ...LEFT_OUT_TABLES])
    const names = (this.#db.prepare(TABLES).all() as { name: string }[]).map(({ name }) => name)
    return names.filter((name) => !known.has(name))
  }

  columns(table: CopiedTable): readonly string[] {
    const own = (this.#db.prepare(COLUMNS).all(table.name) as { name: string }[]).map(({ name }) => name)
    return [...(table.hasHiddenNumber ? ['number'] : []), ...own, ...Object.keys(table.derived ?? {})]
  }

  count({ name }: CopiedTable): number {
    return Number((this.#db.prepare(`SELECT count(*) AS count FROM ${name}`).get() as { count: number }).count)
  }

  /** Yields the rows after a key in the order of the key. */
  *rows(table: CopiedTable, after: readonly unknown[] | undefined): Iterable<CopiedRow> {
    const { name, flags = [], derived = {}, hasHiddenNumber } = table
    const columns = this.columns(table)
      .filter((column) => !Object.hasOwn(derived, column))
      .map((column) => (hasHiddenNumber && column === 'number' ? 'rowid AS number' : `"${column}"`))
    const more = Object.entries(derived).map(([column, expression]) => `${expression} AS "${column}"`)
    const key = (hasHiddenNumber ? ['rowid'] : table.key).join(', ')
    const condition = after ? `WHERE (${key}) > (${after.map(() => '?').join(', ')})` : ''
    const statement = this.#db.prepare(`SELECT ${[...columns, ...more].join(', ')} FROM ${name} ${condition} ORDER BY ${key}`)
    for (const row of statement.iterate(...((after ?? []) as SQLInputValue[]))) {
      yield Object.fromEntries(Object.entries(row).map(([column, value]) => [column, copied(value, flags.includes(column))]))
    }
  }

  numbers(): CopiedNumbers {
    const sequences = new Map(
      (this.#db.prepare(SEQUENCES).all() as { name: string; seq: number }[]).map(({ name, seq }) => [name, Number(seq)]),
    )
    const highest = COPIED_TABLES.filter(({ neverReuses }) => neverReuses).map(({ name, hasHiddenNumber }): [string, number] => {
      const column = hasHiddenNumber ? 'rowid' : 'number'
      const { last } = this.#db.prepare(`SELECT coalesce(max(${column}), 0) AS last FROM ${name}`).get() as { last: number }
      const deleted =
        name === 'inbox' ? (this.#db.prepare('SELECT highest FROM inbox_numbers').get() as { highest: number } | undefined)?.highest : 0
      return [name, Math.max(last, sequences.get(name) ?? 0, deleted ?? 0)]
    })
    const { at } = this.#db.prepare(UPGRADED).get() as { at: number | null }
    return { highest: Object.fromEntries(highest), audit: sequences.get('sop_audit') ?? 0, upgradedAtMs: at }
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
    if (this.#copy !== undefined) removeFiles(this.#copy)
  }
}

function versionOf(file: string): number {
  const db = new DatabaseSync(file, { readOnly: true, timeout: BUSY_MS_MAX })
  try {
    const { user_version: version } = db.prepare('PRAGMA user_version').get() as { user_version: number }
    if (version <= MIGRATIONS.length && version > 0) return version
    throw new AppError(
      'unavailable',
      version === 0 ? `${file} is no database of Sluice.` : `${file} was written by a newer release. Run that release.`,
    )
  } finally {
    db.close()
  }
}

function upgradedCopy({ file, nowMs, log }: SqliteSourceOptions): string {
  const copy = `${file}.to-copy`
  removeFiles(copy)
  try {
    copyFileSync(file, copy)
    if (existsSync(`${file}-wal`)) copyFileSync(`${file}-wal`, `${copy}-wal`)
    const db = new Database(copy)
    try {
      migrate(db, { file: copy, log, nowMs })
    } finally {
      db.close()
    }
    return copy
  } catch (error) {
    removeFiles(copy)
    throw error
  }
}

export function removeFiles(file: string): void {
  for (const suffix of ['', '-wal', '-shm', `.before-schema-${MIGRATIONS.length}`]) rmSync(`${file}${suffix}`, { force: true })
}

const copied = (value: SQLOutputValue | undefined, isFlag: boolean): CopiedRow[string] => {
  if (value === undefined || value === null) return null
  if (isFlag) return Boolean(value)
  return typeof value === 'bigint' ? Number(value) : value
}
