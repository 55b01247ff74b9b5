/** The memory of a machine about a database that it shares with others, outside of that database. */

/** How far a database had come. Each number only grows while the database keeps what was committed. */
export interface SeenDatabase {
  /** The number that the server has given to its files; null where it does not tell. Timelines of different files are not compared. */
  readonly system: string | null
  /** Grows with each promotion of a standby; null where the server does not tell. */
  readonly timeline: number | null
  /** The commits of all daemons. */
  readonly commits: number
  /** When an operator last accepted an earlier state of the data; null when that never happened. */
  readonly acceptedAtMs: number | null
}

/** The record in the data directory. It remembers one database, the one that was written last. */
export interface DatabaseRecord {
  /** Returns undefined for a database that was not seen here. */
  read(database: string): SeenDatabase | undefined
  /** Throws when the file cannot be written. */
  write(database: string, seen: SeenDatabase): void
}
