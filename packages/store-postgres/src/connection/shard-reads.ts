/**
 * Reads of the work of shards. A node of a cluster holds one lease for each shard and asks for the work of all of them at the same
 * time: equal reads that are requested in one turn of the event loop share one statement.
 */
import type { ShardRange } from '@sluice/sdk'
import { type Row, sql } from './connection.ts'
import type { Reader } from './reader.ts'

/** One query, for a range of shards (`$1` and `$2`) and for any shards (`$1`). Its rows have the column `shard`. */
export interface ShardQuery {
  readonly range: string
  readonly any: string
}

/** Builds the query from its text. `shard` is the condition for the column `shard`, which takes the first two parameters. */
export const shardQuery = (text: (shard: string) => string): ShardQuery => ({
  range: text('shard BETWEEN $1 AND $2'),
  any: text('shard = ANY ($1::smallint[]) AND $2::int > 0'),
})

interface Request {
  readonly shards: ShardRange
  readonly resolve: (rows: readonly Row[]) => void
  readonly reject: (error: unknown) => void
}

interface Group {
  readonly query: ShardQuery
  readonly values: readonly unknown[]
  /** The largest number of rows that the query returns; null for all. */
  readonly limit: number | null
  readonly requests: Request[]
}

export class ShardReads {
  readonly #reader: Reader
  #groups = new Map<string, Group>()

  constructor(reader: Reader) {
    this.#reader = reader
  }

  /** `values` are the parameters from the third on. With `limit`, which `values` contain, the query returns at most this number of rows. */
  async all<R extends Row>(query: ShardQuery, shards: ShardRange, limit: number | null, ...values: readonly unknown[]): Promise<R[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly Row[]>()
    if (this.#groups.size === 0) setImmediate(() => this.#run())
    const key = JSON.stringify([query.any, values])
    const group = this.#groups.get(key) ?? { query, values, limit, requests: [] }
    this.#groups.set(key, group)
    group.requests.push({ shards, resolve, reject })
    return (await promise) as R[]
  }

  #run(): void {
    const groups = [...this.#groups.values()]
    this.#groups = new Map()
    for (const group of groups) {
      this.#read(group).catch((error: unknown) => {
        for (const { reject } of group.requests) reject(error)
      })
    }
  }

  async #read(group: Group): Promise<void> {
    const { query, values, limit, requests } = group
    if (requests.length > 1) {
      const shards = [
        ...new Set(requests.flatMap(({ shards: { from, to } }) => Array.from({ length: to - from + 1 }, (_, at) => from + at))),
      ]
      const rows = await this.#reader.all<Row & { shard: number }>(sql(query.any, shards, shards.length, ...values))
      // Beyond the limit, rows of any of the shards may be missing.
      if (limit === null || rows.length < limit) {
        const byShard = Map.groupBy(rows, ({ shard }) => shard)
        for (const {
          shards: { from, to },
          resolve,
        } of requests)
          resolve(from === to ? (byShard.get(from) ?? []) : rows.filter(({ shard }) => shard >= from && shard <= to))
        return
      }
    }
    await Promise.all(
      requests.map(async ({ shards: { from, to }, resolve }) =>
        resolve(await this.#reader.all<Row>(sql(query.range, from, to, ...values))),
      ),
    )
  }
}
