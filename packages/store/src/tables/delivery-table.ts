/** The queries that inbox and outbox share. In both tables row numbers grow and nearly all rows are in one final state. */
import type { DeliveryFilter, WaitingPage } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'

export interface TableDescription {
  readonly name: 'inbox' | 'outbox'
  readonly columns: string
  /** The state of nearly all rows. An index covers the rows in the other states. */
  readonly final: string
  readonly states: readonly string[]
  /** The states whose rows `counts` counts; few rows are in them. */
  readonly counted: readonly string[]
  /** The states of rows that wait for work. */
  readonly waiting: readonly [string, string]
}

interface Channel {
  readonly channel: string | null
}

/** Reads pages of one table. Every method fails with `unavailable` when the store cannot be read. */
export interface DeliveryTable<Row> {
  get(number: number): Row | undefined
  newest(filter: DeliveryFilter): Promise<Row[]>
  /** Lists waiting rows. `condition` is further SQL, empty or beginning with AND; few different ones are used. */
  waiting(page: WaitingPage, condition: string): Row[]
  /** Returns the number of rows in each counted state. */
  counts(): ReadonlyMap<string, number>
}

export function createDeliveryTable<Row extends { readonly number: number }>(
  db: Database,
  { name, columns, final, states, counted, waiting }: TableDescription,
): DeliveryTable<Row> {
  const GET = `SELECT ${columns} FROM ${name} WHERE number = ?`
  const NEWEST = `SELECT ${columns} FROM ${name} WHERE number < ? ORDER BY number DESC LIMIT ?`
  // SQLite uses a partial index only for a query that contains the index's own condition.
  const FINAL = `FROM ${name} WHERE state = '${final}' AND channel`
  const OTHER = `FROM ${name} WHERE state = ? AND state <> '${final}' AND channel`
  const NEWEST_FINAL = `SELECT ${columns} ${FINAL} = ? AND number < ? ORDER BY number DESC LIMIT ?`
  const NEWEST_OTHER = `SELECT ${columns} ${OTHER} = ? AND number < ? ORDER BY number DESC LIMIT ?`
  const NEXT_FINAL = `SELECT min(channel) AS channel ${FINAL} > ?`
  const NEXT_OTHER = `SELECT min(channel) AS channel ${OTHER} > ?`
  const COUNTS = `SELECT state, count(*) AS count FROM ${name} WHERE state <> '${final}' AND state IN (${counted.map((state) => `'${state}'`)}) GROUP BY state`

  /** Returns the channels that have rows in a state, with one index lookup for each. */
  const channelsIn = (state: string): string[] => {
    const found: string[] = []
    for (let last: string | null = ''; ; ) {
      const next: Channel | undefined = state === final ? db.get<Channel>(NEXT_FINAL, last) : db.get<Channel>(NEXT_OTHER, state, last)
      last = next?.channel ?? null
      if (last === null) return found
      found.push(last)
    }
  }
  const newestIn = (state: string, channel: string, before: number, limit: number): Promise<Row[]> =>
    state === final ? db.page<Row>(NEWEST_FINAL, channel, before, limit) : db.page<Row>(NEWEST_OTHER, state, channel, before, limit)

  return {
    get: (number) => db.read(() => db.get<Row>(GET, number)),
    async newest({ limit, before = Number.MAX_SAFE_INTEGER, state, channel }) {
      if (state === undefined && channel === undefined) return db.page<Row>(NEWEST, before, limit)
      // Each page comes from an index, so that rows of other channels and states are never read.
      const pages = (state === undefined ? states : [state]).flatMap((one) =>
        (channel === undefined ? db.read(() => channelsIn(one)) : [channel]).map((other) => newestIn(one, other, before, limit)),
      )
      return (await Promise.all(pages))
        .flat()
        .sort((a, b) => b.number - a.number)
        .slice(0, limit)
    },
    waiting({ after, limit, except = [] }, condition) {
      const OLDEST_OTHER = `SELECT ${columns} ${OTHER} = ? AND number > ?${condition} ORDER BY number LIMIT ?`
      return db.read(() => {
        const pages = waiting.flatMap((state) =>
          channelsIn(state)
            .filter((channel) => !except.includes(channel))
            .map((channel) => db.all<Row>(OLDEST_OTHER, state, channel, after, limit)),
        )
        return pages
          .flat()
          .sort((a, b) => a.number - b.number)
          .slice(0, limit)
      })
    },
    counts: () => new Map(db.read(() => db.all<{ state: string; count: number }>(COUNTS)).map(({ state, count }) => [state, count])),
  }
}
