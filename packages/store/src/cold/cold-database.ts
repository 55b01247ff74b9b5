/**
 * The port between the tables of this folder and a database. The tables are written once, as SQL that SQLite and PostgreSQL share, and the
 * writer of either runs it. The tables through which each message passes are not here: each database has its own statements for them.
 */
import type { MemoryEntry, MessageNews, NewApproval, NewReply, SopRun } from '@sluice/sdk'
import type { RowSigning } from './row-signing.ts'

/** An array is a JSON array in SQLite, and an array in PostgreSQL. A boolean is 0 or 1 in SQLite. */
export type Value = string | number | boolean | null | Uint8Array | readonly string[] | readonly number[]

/** A statement with the parameters `$1`, `$2`, …. Few different texts are used: each is prepared once. */
export interface Statement {
  readonly text: string
  readonly values: readonly Value[]
}

export const statement = (text: string, ...values: readonly Value[]): Statement => ({ text, values })

/**
 * Part of a transaction. It yields statements that need no result of each other, and gets the rows of each. SQLite runs it within one
 * tick, and PostgreSQL sends what it yields at once. It may run twice, so it must only touch the database.
 */
export type Steps<Result> = Generator<readonly Statement[], Result, readonly (readonly unknown[])[]>

/** Runs one statement as a step. */
export function* all<Row>(text: string, ...values: readonly Value[]): Steps<readonly Row[]> {
  const [rows = []] = yield [{ text, values }]
  return rows as readonly Row[]
}

/** Runs one statement as a step, for its first row. */
export function* first<Row>(text: string, ...values: readonly Value[]): Steps<Row | undefined> {
  return (yield* all<Row>(text, ...values))[0]
}

export interface ColdDatabase {
  readonly dialect: Dialect
  readonly signed: RowSigning
  all<Row>(text: string, ...values: readonly Value[]): Promise<Row[]>
  get<Row>(text: string, ...values: readonly Value[]): Promise<Row | undefined>
  /** Runs steps that only read, outside of any transaction. */
  read<Result>(steps: () => Steps<Result>): Promise<Result>
  /** Runs statements in one commit. Resolves to the rows of the last one. */
  write<Row>(...statements: readonly Statement[]): Promise<Row[]>
  /** Runs steps in one transaction. Nothing is stored when they throw. */
  transaction<Result>(steps: () => Steps<Result>): Promise<Result>
  /** Drops at most `limit` rows in small transactions. The statement takes the number of rows as its last parameter, and returns each. */
  dropInSlices(limit: number, text: string, ...values: readonly Value[]): Promise<number>
}

/** The statements and SQL that differ between the databases. */
export interface Dialect {
  readonly audit: AuditDialect
  readonly sops: SopDialect
  readonly memory: MemoryDialect
  /** A column of approvals that only this database has. */
  readonly approvals?: {
    readonly column: string
    /** Returns the SQL of the column of a new approval, whose own value is a parameter. */
    sql(parameter: string): string
    read(asked: NewApproval): Value
  }
  /** The column with the place of a row in the order in which rows were added, in the tables of devices. */
  readonly number: string
  /** Ends a query whose rows no other process may change until the commit. */
  readonly forUpdate: string
  /** Lets processes add pairing codes one after the other. */
  readonly lockCodes: readonly Statement[]
  /** Returns the SQL of the condition that a column is among the values of an array. */
  among(column: string, parameter: string, type: 'text' | 'bigint'): string
  /** Returns the SQL of a column by which the database is not to choose an index. */
  unindexed(column: string): string
  /** Ends a message without running it, and aborts the turn it may have started. Returns false if it had ended before. */
  endMessage(number: number, atMs: number): Steps<boolean>
  /** Queues messages that answer no inbox message. Returns their numbers. */
  queueReplies(replies: readonly NewReply[]): Steps<readonly number[]>
  /** Records who is held back, and queues the notice if that is news. Returns its numbers. */
  queueNews(news: MessageNews): Steps<readonly number[]>
}

export interface AuditDialect {
  /** Selects `number` and `hash` of the last record, and keeps other processes from appending until the commit. */
  readonly head: string
  /** Selects `number`, which is that of the last record also when it was cut off. */
  readonly last: string
  /** Stores number and hash of the new last record, where no table keeps them by itself. */
  readonly setHead?: string
}

export interface SopDialect {
  /** Lets starts of all processes take place one after the other. */
  readonly lock: readonly Statement[]
  /** The columns of a run that only this database has. */
  readonly columns: Readonly<Record<string, (run: SopRun) => Value>>
  /** The SQL of the JSON of the person who started a run. */
  readonly starter: string
}

/** The index of words, which each database has in its own form. */
export interface MemoryDialect {
  /** The words of a new memory, which parameter 7 has as a text. */
  readonly words: string
  /** The SQL of a table with the number of memories of each owner who has any. */
  readonly counts: string
  /** Selects what client 1 may read, at most 2, and matches `match` (parameter 3), the best first. */
  readonly search: string
  match(reader: string, words: readonly string[]): Value
  /** Default: what `search` finds. */
  similar?(db: ColdDatabase, reader: string, text: string, limit: number): Promise<readonly MemoryColumns[]>
}

export type MemoryColumns = Omit<MemoryEntry, 'untrusted'> & { readonly untrusted: unknown }

/** Returns a condition for each filter that is given, and the values of their parameters, which begin with the number `from`. */
export function conditionsOf(
  filters: Readonly<Record<string, Value | undefined>>,
  from: number,
): { readonly conditions: readonly string[]; readonly values: readonly Value[] } {
  const given = Object.entries(filters).flatMap(([column, value]) => (value === undefined ? [] : [{ column, value }]))
  return { conditions: given.map(({ column }, at) => `${column} = $${from + at}`), values: given.map(({ value }) => value) }
}
