/** What the tables of inbox and outbox have in common: growing numbers, and one state in which nearly all rows are. */
import type { DeliveryFilter } from '@sluice/sdk'
import type { Database } from './database.ts'

interface Options {
  readonly name: 'inbox' | 'outbox'
  readonly columns: string
  /** The state nearly all rows are in: there is an index of the others. */
  readonly final: string
  readonly states: readonly string[]
  /** Of rows that wait. */
  readonly waiting: readonly [string, string]
}

export interface DeliveryTable<Row> {
  get(number: number): Row | undefined
  newest(filter: DeliveryFilter): Row[]
  waiting(options: { readonly after: number; readonly limit: number }): Row[]
  /** How many rows are in a state that is not final. */
  counts(): ReadonlyMap<string, number>
}

export function createDeliveryTable<Row extends { readonly number: number }>(
  db: Database,
  { name, columns, final, states, waiting }: Options,
): DeliveryTable<Row> {
  const GET = `SELECT ${columns} FROM ${name} WHERE number = ?`
  const NEWEST = `SELECT ${columns} FROM ${name} WHERE number < ? ORDER BY number DESC LIMIT ?`
  const NEWEST_IN = `SELECT ${columns} FROM ${name} WHERE channel = ? AND state = ? AND number < ? ORDER BY number DESC LIMIT ?`
  const NEXT_CHANNEL = `SELECT min(channel) AS channel FROM ${name} WHERE channel > ?`
  // SQLite uses the index of the states that are not final only where a query says so itself.
  const waitingIn = (state: string): string =>
    `SELECT * FROM (SELECT ${columns} FROM ${name} WHERE state = '${state}' AND state <> '${final}' AND number > ?1 ORDER BY number LIMIT ?2)`
  const WAITING = `${waiting.map(waitingIn).join(' UNION ALL ')} ORDER BY number LIMIT ?2`
  const COUNTS = `SELECT state, count(*) AS count FROM ${name} WHERE state <> '${final}' GROUP BY state`

  /** Those that have rows; a look at the index for each. */
  const channels = (): string[] => {
    const found: string[] = []
    for (let last: string | null = ''; ; ) {
      last = db.get<{ channel: string | null }>(NEXT_CHANNEL, last)?.channel ?? null
      if (last === null) return found
      found.push(last)
    }
  }

  return {
    get: (number) => db.read(() => db.get<Row>(GET, number)),
    newest({ limit, before = Number.MAX_SAFE_INTEGER, state, channel }) {
      return db.read(() => {
        if (state === undefined && channel === undefined) return db.all<Row>(NEWEST, before, limit)
        // Each page is found in the index, so that rows of other channels and states are never looked at.
        const pages = (channel === undefined ? channels() : [channel]).flatMap((one) =>
          (state === undefined ? states : [state]).map((other) => db.all<Row>(NEWEST_IN, one, other, before, limit)),
        )
        return pages
          .flat()
          .sort((a, b) => b.number - a.number)
          .slice(0, limit)
      })
    },
    waiting: ({ after, limit }) => db.read(() => db.all<Row>(WAITING, after, limit)),
    counts: () => new Map(db.read(() => db.all<{ state: string; count: number }>(COUNTS)).map(({ state, count }) => [state, count])),
  }
}
