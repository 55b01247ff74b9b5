/** What the tables of inbox and outbox have in common: growing numbers, and one state in which nearly all rows are. */
import { setImmediate } from 'node:timers/promises'
import type { DeliveryFilter } from '@sluice/sdk'
import type { Database } from './database.ts'

/** A search for rare rows looks at so many numbers before it lets the event loop turn. */
const SLICE = 5_000

interface Options {
  readonly name: 'inbox' | 'outbox'
  readonly columns: string
  /** The state nearly all rows are in: there is an index of the others. */
  readonly final: string
  /** Of rows that wait. */
  readonly waiting: readonly [string, string]
}

export interface DeliveryTable<Row> {
  get(number: number): Row | undefined
  newest(filter: DeliveryFilter): Promise<Row[]>
  waiting(options: { readonly after: number; readonly limit: number }): Row[]
  /** How many rows are in a state that is not final. */
  counts(): ReadonlyMap<string, number>
}

export function createDeliveryTable<Row extends { readonly number: number }>(
  db: Database,
  { name, columns, final, waiting }: Options,
): DeliveryTable<Row> {
  const GET = `SELECT ${columns} FROM ${name} WHERE number = ?`
  const BOUNDS = `SELECT (SELECT min(number) FROM ${name}) AS first, (SELECT max(number) FROM ${name}) AS last`
  const IN_SLICE = `
    SELECT ${columns} FROM ${name}
    WHERE number >= ?1 AND number < ?2 AND (?3 IS NULL OR state = ?3) AND (?4 IS NULL OR channel = ?4) ORDER BY number DESC LIMIT ?5`
  const IN_STATE = `
    SELECT ${columns} FROM ${name}
    WHERE state = ?1 AND state <> '${final}' AND number < ?2 AND (?3 IS NULL OR channel = ?3) ORDER BY number DESC LIMIT ?4`
  // SQLite uses the index of the states that are not final only where a query says so itself.
  const waitingIn = (state: string): string =>
    `SELECT * FROM (SELECT ${columns} FROM ${name} WHERE state = '${state}' AND state <> '${final}' AND number > ?1 ORDER BY number LIMIT ?2)`
  const WAITING = `${waiting.map(waitingIn).join(' UNION ALL ')} ORDER BY number LIMIT ?2`
  const COUNTS = `SELECT state, count(*) AS count FROM ${name} WHERE state <> '${final}' GROUP BY state`

  return {
    get: (number) => db.read(() => db.get<Row>(GET, number)),
    async newest({ limit, before = Number.MAX_SAFE_INTEGER, state = null, channel = null }) {
      if (state !== null && state !== final) return db.read(() => db.all<Row>(IN_STATE, state, before, channel, limit))
      const { first, last } = db.read(() => db.get<{ first: number | null; last: number | null }>(BOUNDS)) ?? {}
      const found: Row[] = []
      let end = Math.min(before, (last ?? 0) + 1)
      while (end > (first ?? end) && found.length < limit) {
        const start = end - SLICE
        found.push(...db.read(() => db.all<Row>(IN_SLICE, start, end, state, channel, limit - found.length)))
        end = start
        await setImmediate()
      }
      return found
    },
    waiting: ({ after, limit }) => db.read(() => db.all<Row>(WAITING, after, limit)),
    counts: () => new Map(db.read(() => db.all<{ state: string; count: number }>(COUNTS)).map(({ state, count }) => [state, count])),
  }
}
