/** One connection to one SQLite file: created private, set up for durability, statements prepared at first use. */
import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { AppError } from '@sluice/sdk'
import { damageOf, isBusy, storageError } from './storage-error.ts'

/** How long a write waits for another process, such as the command line; the event loop stands still meanwhile. */
const BUSY_MS_MAX = 1000
const BUSY_RETRY_MS = 5
/** What a burst may leave behind of the write-ahead log. */
const WAL_BYTES_KEPT_MAX = 16 * 1024 * 1024

/**
 * `auto_vacuum` comes first, because it takes effect only while the file is empty. `secure_delete` overwrites deleted content,
 * so that erased conversations leave nothing in pages that are used again. `fullfsync` is for macOS, where a plain sync stops at the drive's cache.
 */
const DURABLE = `
  PRAGMA auto_vacuum = INCREMENTAL;
  PRAGMA journal_mode = WAL;
  PRAGMA secure_delete = TRUE;
  PRAGMA synchronous = FULL;
  PRAGMA fullfsync = TRUE;
  PRAGMA journal_size_limit = ${WAL_BYTES_KEPT_MAX}`

const DATA_VERSION = 'PRAGMA data_version'

export class Database {
  readonly #connection: DatabaseSync
  /** What reading or writing found to be wrong with the file; it stays until the file is opened anew. */
  damage: string | null = null
  /** By their text. All texts are constants of this package. */
  readonly #statements = new Map<string, StatementSync>()

  /** Creates the file (0600) and its folder (0700) where they are missing. Throws what SQLite throws. */
  constructor(file: string) {
    createPrivately(file)
    this.#connection = new DatabaseSync(file, { timeout: BUSY_MS_MAX, enableForeignKeyConstraints: true })
  }

  /**
   * Makes each commit durable before it returns. Only the switch of a new file to a write-ahead log does not wait by itself
   * for another process, one that opens the same new file.
   */
  makeDurable(): void {
    const giveUpAtMs = performance.now() + BUSY_MS_MAX
    for (;;) {
      try {
        this.#connection.exec(DURABLE)
        return
      } catch (error) {
        if (!isBusy(error) || performance.now() > giveUpAtMs) throw error
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_RETRY_MS)
      }
    }
  }

  get isOpen(): boolean {
    return this.#connection.isOpen
  }

  /** Runs statements that take no values. */
  exec(sql: string): void {
    this.#connection.exec(sql)
  }

  /** Runs one statement; returns how many rows it changed. */
  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#statement(sql).run(...values).changes)
  }

  /** Inserts at most one row; returns its number, or undefined if a conflict kept it out. */
  insert(sql: string, ...values: SQLInputValue[]): number | undefined {
    const { changes, lastInsertRowid } = this.#statement(sql).run(...values)
    return Number(changes) > 0 ? Number(lastInsertRowid) : undefined
  }

  get<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#statement(sql).get(...values) as Row | undefined
  }

  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#statement(sql).all(...values) as Row[]
  }

  /** Changes with every commit of another process but none of this one, and costs about two microseconds. */
  foreignVersion(): number {
    return this.get<{ data_version: number }>(DATA_VERSION)?.data_version ?? 0
  }

  /** Runs `use` in a write transaction: it is durable when this returns, and nothing of it is kept when this throws. */
  transaction<T>(use: () => T): T {
    this.#rollBack()
    this.run('BEGIN IMMEDIATE')
    try {
      const result = use()
      this.run('COMMIT')
      return result
    } catch (error) {
      this.#rollBack()
      throw error
    }
  }

  /** Runs statements that only read, outside of any write. Throws `unavailable` when the disk or the file is at fault. */
  read<T>(use: () => T): T {
    if (!this.isOpen) throw new AppError('unavailable', 'The store is closed.')
    try {
      return use()
    } catch (error) {
      this.damage ??= damageOf(error) ?? null
      throw storageError(error, 'The store cannot be read now')
    }
  }

  close(): void {
    this.#statements.clear()
    this.#connection.close()
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known) return known
    const statement = this.#connection.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  /** Some faults have SQLite roll back by itself, others leave it to us. */
  #rollBack(): void {
    if (!this.#connection.isTransaction) return
    try {
      this.run('ROLLBACK')
    } catch {
      // What made it fail is told by whoever writes next: every transaction begins here.
    }
  }
}

/**
 * Creates and never opens: closing a second descriptor of a file would drop the locks SQLite holds on it for this process.
 */
export function createPrivately(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return
    throw error
  }
  // A file is found after a power cut if its folder is synced, and the folder if the one above it is.
  syncFolder(dirname(file))
  syncFolder(dirname(dirname(file)))
}

/** Not every system lets a folder be opened, or synced. */
export function syncFolder(folder: string): void {
  try {
    const opened = openSync(folder, 'r')
    fsyncSync(opened)
    closeSync(opened)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && /^(?:EISDIR|EPERM|EACCES|EINVAL)$/.test(String(error.code)))) throw error
  }
}
