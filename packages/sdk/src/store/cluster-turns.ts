/**
 * The port of turns that a client waits for, where several nodes share one store (docs/contract.md#ownership): each runs on the node
 * that was asked, one at a time in each session.
 */

import type { ModelMessage } from '../tool/model.ts'
import type { Lease } from '../values/lease.ts'
import type { TurnRow } from './turn-row.ts'

/** A turn that asks for its session. */
export interface BeginningTurn {
  readonly id: string
  /** Null: no other turn is in its way. */
  readonly session: string | null
  /** The client that may abort it. */
  readonly owner: string | undefined
}

/** An unfinished turn, with the messages that it has produced. */
export type UnfinishedTurn = TurnRow & { readonly checkpoint: readonly ModelMessage[] }

export interface ClusterTurns {
  /**
   * The ids of stored turns that are outside the order of this process: an outage left them behind, or this process resumes them. The agent
   * keeps them. `begin` lets them go by the order in which turns were stored, and other turns follow the order of their process.
   */
  readonly leftBehind: Set<string>
  /**
   * Resolves to the lease `session/<session>` once no other turn of the session runs, on any node. Nodes that wait get it one after the
   * other, the longest wait first as far as it is known. `onWait` is called once, before the first wait. Rejects with the reason of
   * `signal` when that aborts first.
   */
  begin(turn: BeginningTurn, options: { readonly signal: AbortSignal; onWait(): void }): Promise<Lease>
  /**
   * Lists stored turns that no process runs any more, oldest first, except turns that answer an inbox message: turns in the shards of this
   * process that their process has left, and turns that this process has begun. Ends the admissions of turns that died unstored with
   * their process.
   */
  abandoned(limit: number): Promise<readonly UnfinishedTurn[]>
  /** Asks the process that runs a turn to abort it, as `TurnStore.requestAbort` does for a stored one. Resolves to false when none runs it. */
  requestAbort(id: string, owner?: string): Promise<boolean>
  /** Whether a node that lives runs the turn, stored or not. */
  isRunning(id: string): Promise<boolean>
  /** Lists the ids of turns of this process that a caller asked to abort. */
  abortsRequested(): Promise<readonly string[]>
}

/** A notice of one process to the others. It may be lost: its subject is in the store. */
export type ClusterNotice =
  | { readonly what: 'approval'; readonly runId: string; readonly stepId: string }
  | { readonly what: 'abort'; readonly turn: string }
  /** The turn was stored for the owner of its shard. */
  | { readonly what: 'turn'; readonly turn: string; readonly shard: number }
  /** A caller on another node waits for the end of the turn. */
  | { readonly what: 'follow'; readonly turn: string }
  | { readonly what: 'ended'; readonly turn: string }

export interface ClusterNotices {
  /** Never rejects and never throws. */
  send(notice: ClusterNotice): void
  /** Calls `listener` with each notice of another process. Returns an unsubscribe function. */
  listen(listener: (notice: ClusterNotice) => void): () => void
}
