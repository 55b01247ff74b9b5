/** A connection to an SQLite file. It creates the file privately, makes commits durable and prepares statements at first use. */
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from 'node:sqlite'
import { syncFolder } from '@sluice/kit'
import { AppError, shardOf, shardOfConversation, shardOfSession, shardOfTurn } from '@sluice/sdk'
import { nodeProblem } from '@sluice/sdk/node-version'
import { indexedWords } from '../tables/memory-words.ts'
import type { PageReader } from './page-reader.ts'
import { damageOf, isBusy, storageError } from './storage-error.ts'

/** A write waits this long for another process, such as the command line. The wait blocks the event loop. */
const BUSY_MS_MAX = 1000
const BUSY_RETRY_MS = 5
/** Until the database is open, another process may be creating it or bringing it to the schema of this release. */
const OPENING_BUSY_MS_MAX = 15_000
/** The largest write-ahead log that stays on disk after a burst of writes. */
const WAL_BYTES_KEPT_MAX = 16 * 1024 * 1024

/**
 * `auto_vacuum` comes first, because it takes effect only while the file is empty. `secure_delete` overwrites deleted content, so
 * that erased conversations do not survive in reused pages. `fullfsync` is for macOS, where a plain sync stops at the drive's cache.
 */
const DURABLE = `
  PRAGMA auto_vacuum = INCREMENTAL;
  PRAGMA journal_mode = WAL;
  PRAGMA secure_delete = TRUE;
  PRAGMA synchronous = FULL;
  PRAGMA fullfsync = TRUE;
  PRAGMA journal_size_limit = ${WAL_BYTES_KEPT_MAX}`

const DATA_VERSION = 'PRAGMA data_version'
/** Pages of lists of a larger file are read in a thread of their own: a smaller file stays in the memory of the operating system. */
const LARGE_FILE_BYTES = 64 * 1024 * 1024
const PAGE_BYTES = 4096
const PAGES = 'PRAGMA page_count'

/** Not safe for nested transactions. After `close` only `isOpen` may be read. */
export class Database {
  readonly #connection: DatabaseSync
  /** The damage that a read or write has found in the file; kept until the file is opened again. */
  damage: string | null = null
  /** The number of write transactions that were begun. */
  transactions = 0
  /** Prepared statements by their text. The number is bounded, because all texts are constants of this package. */
  readonly #statements = new Map<string, StatementSync>()
  readonly #file: string
  readonly #largeBytes: number
  #reader: PageReader | undefined
  #foreignVersion: number | undefined

  /** Creates the file (0600) and its folder (0700) if they are missing. Throws SQLite's errors, and `unavailable` in an older Node. */
  constructor(file: string, largeBytes = LARGE_FILE_BYTES) {
    const problem = nodeProblem(process.versions.node)
    if (problem !== undefined) throw new AppError('unavailable', `The store does not open: ${problem}.`)
    this.#file = file
    this.#largeBytes = largeBytes
    createPrivately(file)
    this.#connection = new DatabaseSync(file, { timeout: OPENING_BUSY_MS_MAX, enableForeignKeyConstraints: true })
    defineFunctions(this.#connection)
  }

  /**
   * Makes each commit durable before it returns. SQLite's own time limit does not cover the switch of a new file to a write-ahead
   * log, so this method repeats it while another process opens the same new file.
   */
  makeDurable(): void {
    const giveUpAtMs = performance.now() + OPENING_BUSY_MS_MAX
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

  /**
   * Ends the opening, after the migrations: a write waits for other processes only for a moment from now on. Keeps in memory the pages that
   * SQLite copies to undo one statement. By default it writes them to a file outside of the data folder, in which texts of messages may
   * stand; without that file, a stored turn also takes less processor time. Migrations may sort and rewrite more than fits into memory.
   */
  opened(): void {
    this.#connection.exec(`PRAGMA temp_store = MEMORY; PRAGMA busy_timeout = ${BUSY_MS_MAX}`)
  }

  get isOpen(): boolean {
    return this.#connection.isOpen
  }

  /** Runs statements without parameters. */
  exec(sql: string): void {
    this.#connection.exec(sql)
  }

  /** Runs one statement and returns the number of changed rows. */
  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#statement(sql).run(...values).changes)
  }

  /** Inserts at most one row. Returns its number, or undefined after a conflict. */
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

  /**
   * Returns a number that changes with every commit of another process, but not with this one's. It is read once per tick of the event loop:
   * a read locks and unlocks the file, and a turn would do so several times.
   */
  foreignVersion(): number {
    if (this.#foreignVersion !== undefined) return this.#foreignVersion
    setImmediate(() => {
      this.#foreignVersion = undefined
    })
    this.#foreignVersion = this.get<{ data_version: number }>(DATA_VERSION)?.data_version ?? 0
    return this.#foreignVersion
  }

  /** Runs `use` in a write transaction, which is durable on return. When `use` throws, the transaction is rolled back. */
  transaction<T>(use: () => T): T {
    this.#rollBack()
    this.run('BEGIN IMMEDIATE')
    this.transactions++
    try {
      const result = use()
      this.run('COMMIT')
      return result
    } catch (error) {
      this.#rollBack()
      throw error
    }
  }

  /** Runs read-only statements outside of any write. Throws `unavailable` for a fault of the disk or the file. */
  read<T>(use: () => T): T {
    if (!this.isOpen) throw new AppError('unavailable', 'The store is closed.')
    try {
      return use()
    } catch (error) {
      this.damage ??= damageOf(error) ?? null
      throw storageError(error, 'The store cannot be read now')
    }
  }

  /**
   * Runs a query of a list, whose rows may be anywhere in the file: it does not block the event loop if the file is large. Rejects with
   * `unavailable` for a fault of the disk or the file.
   */
  async page<Row>(sql: string, ...values: SQLInputValue[]): Promise<Row[]> {
    const pages = this.read(() => this.get<{ page_count: number }>(PAGES)?.page_count ?? 0)
    if (pages * PAGE_BYTES < this.#largeBytes) return this.read(() => this.all<Row>(sql, ...values))
    const { PageReader } = await import('./page-reader.ts')
    this.#reader ??= new PageReader(this.#file)
    const rows = await this.#reader.all(numbered(sql), values).catch((error: unknown) => this.read(() => throwIt(error)))
    return rows as Row[]
  }

  /** Call it before `close`, so that the last connection to the file is this one. */
  async closeReader(): Promise<void> {
    await this.#reader?.close()
  }

  close(): void {
    this.#statements.clear()
    this.#connection.close()
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known) return known
    const statement = this.#connection.prepare(numbered(sql))
    this.#statements.set(sql, statement)
    return statement
  }

  /** SQLite rolls back by itself after some faults, but not after all. */
  #rollBack(): void {
    if (!this.#connection.isTransaction) return
    try {
      this.run('ROLLBACK')
    } catch {
      // The next transaction begins with this method and reports the cause.
    }
  }
}

/** SQLite takes `$1` for a name, and `?1` for a number. */
const numbered = (sql: string): string => sql.replaceAll(/\$(?=\d)/g, '?')

const throwIt = (error: unknown): never => {
  throw error
}

/** Defines the SQL functions by which queries select the rows of some shards. */
export function defineFunctions(connection: DatabaseSync): void {
  const define = (name: string, shardOf: (...columns: SQLOutputValue[]) => number): void =>
    connection.function(name, { deterministic: true }, shardOf)
  define('shard_of', (id) => shardOf(String(id)))
  define('shard_of_session', (session) => shardOfSession(String(session)))
  define('shard_of_turn', (session, id) => shardOfTurn(session === null ? null : String(session), String(id)))
  define('shard_of_conversation', (channel, account, to) =>
    shardOfConversation({ channel: String(channel), account: String(account), to: JSON.parse(String(to)) }),
  )
  connection.function('indexed_words', { deterministic: true }, (key, content) => indexedWords(String(key), String(content)))
}

/**
 * Creates a file, but never opens an existing one: closing a second descriptor would drop SQLite's locks of this process.
 */
export function createPrivately(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return
    throw error
  }
  // After a power cut, a file exists only if its folder was synced, and the folder only if its parent was.
  syncFolder(dirname(file))
  syncFolder(dirname(dirname(file)))
}
