/** The port of the events that all nodes of a cluster share: one order of numbers, which every node follows. */

export interface LoggedEvent {
  /** Later events have higher numbers. Numbers between two events that follow one another belong to events that were dropped. */
  readonly seq: number
  /** The text that was appended. */
  readonly text: string
  /** True when this process appended it. */
  readonly isOwn: boolean
}

export interface EventFollower {
  /** Whether events are wanted at once. Otherwise the follower may get the events of other processes up to a second late. */
  isWatched(): boolean
  /**
   * Called first, and again whenever the database has lost its events: all later events have numbers above `seq`. Numbers from `base` on
   * belong to the same order; lower ones were lost.
   */
  onStart(from: { readonly seq: number; readonly base: number }): void
  /** Called with later events in the order of their numbers. Must not throw. */
  onEvents(events: readonly LoggedEvent[]): void
}

export interface EventLog {
  /**
   * Appends an event soon, without waiting for it. `stored` is called with its number, or with null when it was dropped, because too many
   * wait or the database cannot be written.
   */
  append(text: string, stored?: (seq: number | null) => void): void
  /** Resolves once the follower has the newest events, at most as many as `keptMax`. It gets each later one until the store is closed. */
  follow(follower: EventFollower, keptMax: number): Promise<void>
  /** Resolves once the follower has the events that are stored now, or the database cannot be read. Never rejects. */
  catchUp(): Promise<void>
}
