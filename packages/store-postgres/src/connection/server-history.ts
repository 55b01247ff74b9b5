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
/** The number of the files of the server, and their timeline, which grows with each promotion of a standby. */
const PLACE = `
  SELECT system_identifier::text AS system, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int AS timeline
  FROM pg_control_system()`
// Only what is committed: the number of a sequence can be seen before its transaction has reached a standby.
const MARKS = `
  SELECT (SELECT coalesce(sum(writes), 0)::bigint FROM connections) AS commits,
    (SELECT value::float8 FROM meta WHERE key = '${ACCEPTED_KEY}') AS "acceptedAtMs"`
const NO_TABLE = '42P01'

/** Runs a statement on a connection. */
type All = <R>(text: string) => Promise<R[]>

type Place = Pick<SeenDatabase, 'system' | 'timeline'>
type Marks = Omit<SeenDatabase, keyof Place>

const NOWHERE: Place = { system: null, timeline: null }
const EMPTY: Marks = { commits: 0, acceptedAtMs: null }

/** A server that accepts writes, as it is now. */
export interface Found extends SeenDatabase {
  /** `host:port` */
  readonly name: string
  /** The part of the state seen before that the server lacks; undefined when it lacks nothing. */
  readonly why: string | undefined
}

export class ServerHistory {
  readonly #record: DatabaseRecord
  readonly #database: string
  readonly #log: Logger
  #seen: SeenDatabase | undefined
  /** The state in the file. */
  #kept: SeenDatabase | undefined
  #oldPrimaries: readonly string[] = []

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

  /** The servers that accepted writes in addition to the right one when the last connection was made. */
  get oldPrimaries(): readonly string[] {
    return this.#oldPrimaries
  }

  /** Compares a server with `seen`, which was read before it was asked: other connections may see newer marks meanwhile. */
  async find(all: All, name: string, seen: SeenDatabase | undefined): Promise<Found> {
    const [place, marks] = [await placeOf(all), await marksOf(all)]
    const now = { ...place, ...marks }
    return { name, ...now, why: seen && stepBack(seen, now) }
  }

  /** Notes a server that is used from now on. `others` are servers that accept writes although they went back. */
  accept({ name, why, ...now }: Found, others: readonly string[]): void {
    this.#saw(now)
    this.#keep()
    this.#oldPrimaries = others
    if (others.length > 0)
      this.#log.error(`${others.join(' and ')} accepts writes but is an old primary: stop it, or make it a standby of ${name}`)
  }

  /** Reads how far the database has come. `all` uses a connection that was accepted. */
  async look(all: All): Promise<void> {
    const marks = await marksOf(all)
    if (this.#seen) this.#saw({ ...this.#seen, ...marks })
    this.#keep()
  }

  /** Notes that the server of this connection lacks `commits` that were acknowledged, so that no other connection accepts it. */
  async lacks(all: All, commits: number): Promise<void> {
    const marks = await marksOf(all)
    if (this.#seen) this.#saw({ ...this.#seen, commits: marks.commits + commits })
    this.#keep()
  }

  /** Writes what was seen into the data directory, if it is news. Never throws. */
  #keep(): void {
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
})

/** Returns the error for servers whose databases all went back. */
export const wentBack = (found: readonly (Pick<Found, 'name' | 'why'> | undefined)[]): WrongServerError =>
  new WrongServerError(
    `The database went back: ${found.map((one) => `${one?.name} ${one?.why}`).join('; ')}. Nothing is read or written there. Stop an old primary, or make it a standby; for data that was recovered, run 'sluice store recovered'; for a new database, start once with --new-database (docs/cluster.md#fencing).`,
  )

/** Resolves to nulls where the server does not tell its place, as some services. */
async function placeOf(all: All): Promise<Place> {
  try {
    return (await all<Place>(PLACE))[0] ?? NOWHERE
  } catch (error) {
    if (sqlState(error) === undefined) throw error
    return NOWHERE
  }
}

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
  return undefined
}
