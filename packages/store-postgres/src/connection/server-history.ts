/**
 * Notices a database that went back: an old primary that accepts writes again after a failover, or data that was recovered to an earlier
 * time. What only grows is kept in the data directory and compared on each new connection, so that nothing is acknowledged on a server
 * that lacks what was acknowledged before.
 */
import { isDeepStrictEqual } from 'node:util'
import type { DatabaseRecord, Logger, SeenDatabase } from '@sluice/sdk'
import { sqlState, WrongServerError } from './postgres-error.ts'

/** The key of `meta` with the time at which an operator accepted an earlier state. */
export const ACCEPTED_KEY = 'accepted_at'
const MARKS = `
  SELECT (SELECT last_value FROM epochs) AS epoch, (SELECT coalesce(sum(writes), 0)::bigint FROM connections) AS commits,
    (SELECT value::float8 FROM meta WHERE key = '${ACCEPTED_KEY}') AS "acceptedAtMs"`
const NO_TABLE = '42P01'

/** Runs a statement on a connection. */
type All = <R>(text: string) => Promise<R[]>

type Marks = Pick<SeenDatabase, 'epoch' | 'commits' | 'acceptedAtMs'>

const EMPTY: Marks = { epoch: 0, commits: 0, acceptedAtMs: null }

export interface Found extends Pick<SeenDatabase, 'system' | 'timeline'> {
  /** `host:port` */
  readonly name: string
  /** What was seen before the server was asked: other connections may see newer marks meanwhile. */
  readonly seen: SeenDatabase | undefined
}

export class ServerHistory {
  readonly #record: DatabaseRecord
  readonly #database: string
  readonly #log: Logger
  #seen: SeenDatabase | undefined
  /** What the file has. */
  #kept: SeenDatabase | undefined

  /** `database` names the database in the record. */
  constructor(record: DatabaseRecord, database: string, log: Logger) {
    this.#record = record
    this.#database = database
    this.#log = log
    this.#seen = record.read(database)
    this.#kept = this.#seen
  }

  get seen(): SeenDatabase | undefined {
    return this.#seen
  }

  /** Compares a server that accepts writes with what was seen. Throws a `WrongServerError` when its database went back. */
  async accept(all: All, { name, system, timeline, seen }: Found): Promise<void> {
    const now = { system, timeline, ...(await marksOf(all)) }
    const why = seen && stepBack(seen, now)
    if (why !== undefined) throw wentBack(name, why)
    this.#saw(now)
    this.keep()
  }

  /** Reads how far the database has come. `all` uses a connection that was accepted. */
  async look(all: All): Promise<void> {
    const marks = await marksOf(all)
    if (this.#seen) this.#saw({ ...this.#seen, ...marks })
    this.keep()
  }

  /** Notes that the server of this connection lacks `commits` that were acknowledged, so that no other connection accepts it. */
  async lacks(all: All, commits: number): Promise<void> {
    const marks = await marksOf(all)
    if (this.#seen) this.#saw({ ...this.#seen, commits: marks.commits + commits })
    this.keep()
  }

  /** Writes what was seen into the data directory, if it is news. Never throws. */
  keep(): void {
    const seen = this.#seen
    if (!seen || seen === this.#kept) return
    try {
      this.#record.write(this.#database, seen)
      this.#kept = seen
    } catch (error) {
      this.#log.warn('the state of the database is not noted, so that a restart may not notice a database that went back', { error })
    }
  }

  #saw(now: SeenDatabase): void {
    const seen = this.#seen
    const isSame = seen?.system === now.system && seen.acceptedAtMs === now.acceptedAtMs
    // Another connection may have seen newer marks meanwhile.
    const newest = isSame ? newestOf(seen, now) : now
    if (!isDeepStrictEqual(newest, seen)) this.#seen = newest
  }
}

const newestOf = (one: SeenDatabase, other: SeenDatabase): SeenDatabase => ({
  ...one,
  timeline: one.timeline === null ? other.timeline : Math.max(one.timeline, other.timeline ?? 0),
  commits: Math.max(one.commits, other.commits),
  epoch: Math.max(one.epoch, other.epoch),
})

/** `why` says what the server lacks. */
export const wentBack = (name: string, why: string): WrongServerError =>
  new WrongServerError(
    `The database went back: ${name} ${why}. Nothing is read or written there. Stop an old primary, or make it a standby; for data that was recovered, run 'sluice store recovered'; for a new database, start once with --new-database (docs/cluster.md#fencing).`,
  )

async function marksOf(all: All): Promise<Marks> {
  try {
    return (await all<Marks>(MARKS))[0] ?? EMPTY
  } catch (error) {
    if (sqlState(error) === NO_TABLE) return EMPTY
    throw error
  }
}

/** Returns what the database lacks that was seen; undefined when it lacks nothing, or an operator accepted its state since. */
function stepBack(seen: SeenDatabase, now: SeenDatabase): string | undefined {
  if ((now.acceptedAtMs ?? 0) > (seen.acceptedAtMs ?? 0)) return undefined
  if (now.system === seen.system && now.timeline !== null && seen.timeline !== null && now.timeline < seen.timeline)
    return `is on timeline ${now.timeline}, but this daemon has worked on timeline ${seen.timeline}`
  if (now.commits < seen.commits) return `has ${now.commits} commits of Sluice, but this daemon has seen ${seen.commits}`
  if (now.epoch < seen.epoch) return `has given out lease ${now.epoch}, but this daemon has seen lease ${seen.epoch}`
  return undefined
}
