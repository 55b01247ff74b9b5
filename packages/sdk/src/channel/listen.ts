/** The port of a channel that listens, for each connection (docs/contract.md#channels). The daemon owns retries and health. */

import type { Lease } from '../values/lease.ts'

/** Messages that the platform may never deliver again. */
export interface Gap {
  /** The time in milliseconds since 1970 after which messages may be missing; undefined when it is unknown. */
  readonly sinceMs?: number
  /** A clause without secrets, such as `the platform keeps updates for one day`. */
  readonly why: string
}

/** A connection tells its runner what happens to it. */
export interface ListenReport {
  /** The platform accepted the connection. Further calls have no effect. */
  connected(): void
  /** Something arrived from the platform. */
  event(): void
  /** Messages may be missing permanently. Logged and emitted as an event. */
  gap(gap: Gap): void
  /** The connection works, but not fully; undefined when it does again. The health is `down` with this detail meanwhile. */
  problem(detail: string | undefined): void
  /**
   * The platform asks for another connection, and this one still works. Opens the other one in parallel, and resolves once that
   * is connected or the channel stops listening. Then this connection should end.
   */
  replace(): Promise<void>
}

export interface ListenContext {
  /**
   * The lease under which the channel listens, so that one process of a cluster does. Null for a connection that has none, such
   * as the one of a trigger. `signal` aborts when it is lost.
   */
  readonly lease: Lease | null
  /** Aborts when the channel stops listening permanently, and is the same for all its connections until then. */
  readonly signal: AbortSignal
  readonly report: ListenReport
  /**
   * Runs `task`, which reads and delivers messages that may have been missed, until it succeeds: failures are retried with the
   * delays of the runner, across connections. One task runs at a time; a task that comes meanwhile runs afterwards, and
   * replaces one that has not begun. Resolves once no task is left, or the channel stops listening.
   */
  catchUp(task: (signal: AbortSignal) => Promise<void>): Promise<void>
  /** Cuts the delay before the next attempt short, because the platform works again. Not a delay that the platform asked for. */
  retrySoon(): void
}

/** Positions in conversations up to which messages are durable. The runner reads and writes them. */
export interface ListenCursors {
  /** Reads the stored positions before the first connection. Rejects if the store fails; the runner tries again. */
  load(): Promise<void>
  /** Stores changed positions. Called every few seconds and at the end. */
  flush(): Promise<void>
}
