/** The queries that inbox and outbox share. In both tables row numbers grow and nearly all rows are in one final state. */
import type { DeliveryFilter, ShardRange, WaitingPage } from '@sluice/sdk'
import type { Row as Columns } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { shardQuery } from '../connection/shard-reads.ts'

export interface TableDescription {
  readonly name: 'inbox' | 'outbox'
  readonly columns: string
  /** The state of nearly all rows. */
  readonly final: string
  /** Other states in which a row has ended. The column `marked` repeats them. */
  readonly marked: readonly string[]
  /** The column with the time from which a row waits. */
  readonly sinceColumn: string
  /** The condition that an unfinished row waits for work. */
  readonly waiting: string
}

/** Reads pages of one table. Every method rejects with `unavailable` when the store cannot be read. */
export interface DeliveryTable<Row> {
  get(number: number): Promise<Row | undefined>
  newest(filter: DeliveryFilter): Promise<Row[]>
  waiting(page: WaitingPage, shards: ShardRange | null): Promise<Row[]>
  oldestWaitingMs(): Promise<number | null>
  /** The number of rows in each state but the final one. */
  counts(): Promise<ReadonlyMap<string, number>>
}

export function createDeliveryTable<Row>(
  db: Database,
  { name, columns, final, marked, sinceColumn, waiting }: TableDescription,
): DeliveryTable<Row> {
  const GET = `SELECT ${columns} FROM ${name} WHERE number = $1`
  const WAITING = shardQuery(
    (shard) => `
    SELECT ${columns}, shard FROM ${name}
    WHERE ended_at IS NULL AND ${waiting} AND ${shard} AND number > $3 AND channel <> ALL ($5::text[]) ORDER BY number LIMIT $4`,
  )
  const OLDEST = `SELECT min(${sinceColumn}) AS at FROM ${name} WHERE ended_at IS NULL AND ${waiting}`
  const COUNTS = `
    SELECT state, count(*) AS count FROM ${name} WHERE ended_at IS NULL GROUP BY state
    UNION ALL SELECT marked, count(*) FROM ${name} WHERE marked IS NOT NULL GROUP BY marked`
  /** Each state has an index, but the final one, in which nearly all rows are. */
  const inState = (state: string): string => {
    if (state === final) return `state = '${final}'`
    return marked.includes(state) ? 'marked = $3' : 'ended_at IS NULL AND state = $3'
  }
  return {
    get: (number) => db.get(GET, number),
    newest({ limit, before = Number.MAX_SAFE_INTEGER, state, channel }) {
      const conditions = ['number < $1']
      const values: unknown[] = [before, limit]
      if (state !== undefined) {
        conditions.push(inState(state))
        if (state !== final) values.push(state)
      }
      if (channel !== undefined) conditions.push(`channel = $${values.push(channel)}`)
      return db.all(`SELECT ${columns} FROM ${name} WHERE ${conditions.join(' AND ')} ORDER BY number DESC LIMIT $2`, ...values)
    },
    async waiting({ after, limit, except = [] }, shards) {
      return shards ? db.shards.all<Row & Columns>(WAITING, shards, limit, after, limit, except) : []
    },
    oldestWaitingMs: async () => (await db.get<{ at: number | null }>(OLDEST))?.at ?? null,
    async counts() {
      const rows = await db.all<{ state: string; count: number }>(COUNTS)
      return new Map(rows.map(({ state, count }) => [state, count]))
    },
  }
}
