/** What each group of the store uses: reads, and the writes of one caller. */
import type { Clock } from '@sluice/sdk'
import type { RowSignatures } from '../schema/row-signatures.ts'
import { sql } from './connection.ts'
import type { Writer } from './group-commit.ts'
import type { Reader } from './reader.ts'
import type { ServerClock } from './server-clock.ts'
import type { ShardReads } from './shard-reads.ts'
import type { WorkNotices } from './work-notices.ts'

export interface Database {
  readonly reader: Reader
  readonly writer: Writer
  readonly clock: Clock
  readonly signatures: RowSignatures
  readonly serverClock: ServerClock
  readonly shards: ShardReads
  /** Present in a cluster. */
  readonly arrivals?: WorkNotices | undefined
  all<R>(text: string, ...values: readonly unknown[]): Promise<R[]>
  get<R>(text: string, ...values: readonly unknown[]): Promise<R | undefined>
}

export const createDatabase = ({
  reader,
  shards,
  writer,
  clock,
  signatures,
  serverClock,
  arrivals,
}: Omit<Database, 'all' | 'get'>): Database => ({
  reader,
  shards,
  writer,
  clock,
  signatures,
  serverClock,
  arrivals,
  all: (text, ...values) => reader.all(sql(text, ...values)),
  get: (text, ...values) => reader.get(sql(text, ...values)),
})

/** Returns an array for each member of the rows that `columns` names, as the parameters of `unnest`. */
export const columnsOf = <Row>(rows: readonly Row[], ...columns: readonly ((row: Row) => unknown)[]): unknown[][] =>
  columns.map((column) => rows.map(column))

/**
 * The SQL condition that a row which is found by its number has not ended. Written as `IS NULL`, the server would look through all open
 * rows for the numbers, because it expects few of them when it plans a statement, and there are many while work waits.
 */
export const isOpen = (column = 'ended_at'): string => `coalesce(${column}, -1) = -1`
