/** Writes the tables of an embedded database for a copy. The file gets its name once it is complete. */
import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { SQLInputValue } from 'node:sqlite'
import { syncFolder } from '@sluice/kit'
import { AppError, type Logger } from '@sluice/sdk'
import { Database } from '../connection/database.ts'
import { migrate } from '../schema/migrate.ts'
import { indexedWords } from '../tables/memory-words.ts'
import { COPIED_TABLES, type CopiedNumbers, type CopiedRow, type CopiedTable, sharedColumns } from './copied-tables.ts'
import { removeFiles, SqliteSource } from './sqlite-source.ts'

/** The table that marks an unfinished copy and names its source. */
const MARK = 'CREATE TABLE IF NOT EXISTS copy_of (source TEXT NOT NULL) STRICT'
const MARKED = 'SELECT source FROM copy_of'
const SET_SEQUENCE = 'UPDATE sqlite_sequence SET seq = ?2 WHERE name = ?1'
/** Adds up the costs of the copied turns, and of turns that the source had deleted. */
const SUM_COSTS = `
  DELETE FROM costs_by_model;
  INSERT INTO costs_by_model
  SELECT CAST(ended_at / 900000 AS INTEGER), agent, coalesce(model, ''), total(cost_usd), count(*), total(input_tokens), total(output_tokens)
  FROM turns WHERE ended_at IS NOT NULL GROUP BY 1, 2, 3;
  INSERT INTO costs_by_model SELECT quarter, agent, model, usd, turns, input_tokens, output_tokens FROM dropped_costs WHERE true
  ON CONFLICT DO UPDATE SET usd = usd + excluded.usd, turns = turns + excluded.turns, input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens`
const ADD_SEQUENCE = 'INSERT INTO sqlite_sequence (name, seq) SELECT ?1, ?2 WHERE changes() = 0 AND ?2 > 0'

export interface SqliteTargetOptions {
  /** The path of the database once it is complete. */
  readonly file: string
  /** The source of the copy. */
  readonly source: string
  /** True: an unfinished copy is thrown away. */
  readonly restart: boolean
  readonly nowMs: number
  readonly log: Logger
}

export class SqliteTarget {
  readonly #file: string
  readonly #part: string
  readonly #db: Database
  #reader: SqliteSource | undefined

  /** Throws `conflict` when the file has data, or when an unfinished copy is one of another database. */
  constructor({ file, source, restart, nowMs, log }: SqliteTargetOptions) {
    this.#file = file
    this.#part = `${file}.incoming`
    requireEmpty(file, { nowMs, log })
    if (restart) removeFiles(this.#part)
    this.#db = new Database(this.#part)
    try {
      this.#db.makeDurable()
      migrate(this.#db, { file: this.#part, log, nowMs })
      this.#db.exec(MARK)
      const marked = this.#db.get<{ source: string }>(MARKED)?.source
      if (marked === undefined) this.#db.run('INSERT INTO copy_of (source) VALUES (?)', source)
      else if (marked !== source)
        throw new AppError('conflict', `${this.#part} is an unfinished copy of ${marked}. Start again with --restart to throw it away.`)
    } catch (error) {
      this.#db.close()
      throw error
    }
  }

  columns(table: CopiedTable): readonly string[] {
    return this.#open().columns(table)
  }

  /** Resolves to the key of the last row that an earlier attempt has copied. */
  last(table: CopiedTable): readonly unknown[] | undefined {
    const key = table.hasHiddenNumber ? ['rowid'] : table.key
    const order = key.map((column) => `${column} DESC`).join(', ')
    const row = this.#db.get<Record<string, unknown>>(`SELECT ${key.join(', ')} FROM ${table.name} ORDER BY ${order} LIMIT 1`)
    return row && key.map((column) => row[column])
  }

  /** Resolves once the rows are stored. */
  write(table: CopiedTable, rows: readonly CopiedRow[]): void {
    const { computed = [] } = table
    const columns = [...sharedColumns(table, this.columns(table)), ...computed]
    const names = columns.map((column) => (table.hasHiddenNumber && column === 'number' ? 'rowid' : `"${column}"`))
    const text = `INSERT INTO ${table.name} (${names.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
    this.#db.transaction(() => {
      for (const row of rows) {
        const words = computed.length > 0 ? indexedWords(String(row.key), String(row.content)) : ''
        this.#db.run(text, ...columns.map((column) => (computed.includes(column) ? words : toInput(row[column]))))
      }
    })
  }

  count(table: CopiedTable): number {
    return this.#open().count(table)
  }

  rows(table: CopiedTable): Iterable<CopiedRow> {
    return this.#open().rows(table, undefined)
  }

  /** Keeps numbers of deleted rows from being used again, and tells later upgrades of this file when the data was upgraded. */
  setNumbers({ highest, audit, upgradedAtMs }: CopiedNumbers): void {
    this.#close()
    const sequences = COPIED_TABLES.filter(({ name }) => hasSequence(this.#db, name)).map(({ name }) => name)
    this.#db.transaction(() => {
      this.#db.exec(SUM_COSTS)
      for (const name of [...sequences, 'sop_audit']) {
        const last = name === 'sop_audit' ? audit : (highest[name] ?? 0)
        this.#db.run(SET_SEQUENCE, name, last)
        this.#db.run(ADD_SEQUENCE, name, last)
      }
      this.#db.run('UPDATE inbox_numbers SET highest = max(highest, ?)', highest.inbox ?? 0)
      this.#db.run('DELETE FROM upgrades')
      if (upgradedAtMs !== null) this.#db.run('INSERT INTO upgrades (at, from_schema) VALUES (?, 0)', upgradedAtMs)
    })
  }

  /** Gives the complete file its name. A daemon finds either no database or the whole one. */
  finish(): void {
    this.#close()
    this.#db.exec('DROP TABLE copy_of; PRAGMA wal_checkpoint(TRUNCATE)')
    this.#db.close()
    removeFiles(this.#file)
    renameSync(this.#part, this.#file)
    rmSync(`${this.#part}-wal`, { force: true })
    rmSync(`${this.#part}-shm`, { force: true })
    syncFolder(dirname(this.#file))
  }

  /** Leaves an unfinished copy in place: a later attempt goes on with it. */
  close(): void {
    this.#close()
    if (this.#db.isOpen) this.#db.close()
  }

  #open(): SqliteSource {
    this.#reader ??= new SqliteSource({ file: this.#part, nowMs: 0, log: SILENT })
    return this.#reader
  }

  #close(): void {
    this.#reader?.close()
    this.#reader = undefined
  }
}

const SILENT: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

function requireEmpty(file: string, { nowMs, log }: { nowMs: number; log: Logger }): void {
  // The creation of a key leaves an empty file.
  if (!existsSync(file) || statSync(file).size === 0) return
  const existing = new SqliteSource({ file, nowMs, log })
  try {
    const full = COPIED_TABLES.find((table) => existing.count(table) > 0)
    if (full)
      throw new AppError('conflict', `${file} has data already (${full.name}). Move it away, together with its -wal file, and try again.`)
  } finally {
    existing.close()
  }
}

const hasSequence = (db: Database, name: string): boolean =>
  /AUTOINCREMENT/.test(db.get<{ sql: string }>("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", name)?.sql ?? '')

const toInput = (value: CopiedRow[string] | undefined): SQLInputValue => (typeof value === 'boolean' ? Number(value) : (value ?? null))
