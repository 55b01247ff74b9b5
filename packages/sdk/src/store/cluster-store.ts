/**
 * The port of a cluster: several daemons, its nodes, that share one database (docs/contract.md#ownership). Only a store that was opened
 * for a cluster has it.
 */

import type { Lease } from '../values/lease.ts'
import type { SharedState } from './cluster-state.ts'
import type { ClusterNotices, ClusterTurns } from './cluster-turns.ts'
import type { WaitingMessage } from './delivery-store.ts'
import type { NodeReport } from './node-report.ts'

/**
 * `ingress`: the node takes requests of platforms. `worker`: it owns shards, so that it runs turns, procedures and replies. `channels`: it
 * holds the long connections of channels.
 */
export const CLUSTER_ROLES = ['ingress', 'worker', 'channels'] as const
export type ClusterRole = (typeof CLUSTER_ROLES)[number]

/** How a daemon takes part in a cluster. */
export interface ClusterMember {
  /** The name of the cluster. */
  readonly name: string
  /** The name of the node, which no other node of the cluster has. */
  readonly node: string
  readonly roles: readonly ClusterRole[]
  /** The URL at which other nodes and operators reach the node. */
  readonly url: string | null
  /** The release that runs there. */
  readonly version: string
}

/**
 * `up`: works. `drained`: an operator has asked it to own nothing. `leaving`: it is stopping. `dead`: it has given no sign of life for
 * the time after which others take over its leases.
 */
export type NodeState = 'up' | 'drained' | 'leaving' | 'dead'

/** Clocks of nodes that differ more from that of the database are reported: signatures of platforms and the times of keys depend on them. */
export const CLOCK_OFFSET_MS_MAX = 1_000

export interface ClusterNode extends ClusterMember {
  readonly state: NodeState
  /** The time since the last sign of life, by the clock of the database. */
  readonly silentMs: number
  readonly startedAtMs: number
  /** How far its clock is ahead of that of the database, negative when it is behind; null until it has measured it. */
  readonly clockOffsetMs: number | null
  /** The schema that its release knows. */
  readonly schemaVersion: number
  /** The version of the configuration in force there; null where it has its own. */
  readonly configVersion: number | null
  /** The id of the key for secrets that it encrypts with. */
  readonly keyId: string | null
  /** The number of shards that it owns; 0 for a dead node, whose leases have ended. */
  readonly shards: number
  /** The names of its other leases, except leases of sessions. */
  readonly leases: readonly string[]
  /** Its last report; null until the first one, and of an earlier release. */
  readonly report: NodeReport | null
}

export interface ShardClaim {
  /** The number of shards that this node should own now. */
  readonly share: number
  /** The leases that this call has taken: one for each shard. */
  readonly taken: readonly Lease[]
  /** True while an operator has drained this node. */
  readonly isDrained: boolean
}

export interface ClusterStore extends ClusterMember, SharedState {
  readonly turns: ClusterTurns
  readonly notices: ClusterNotices
  /**
   * The facts that this node knows without a read: the number of live workers, the time since its last acknowledged sign of life, and its
   * `clockOffsetMs`.
   */
  seen(): { readonly workers: number; readonly beatAgeMs: number; readonly clockOffsetMs: number | null }
  /** Lists the nodes by name, with nodes that died within the last day. */
  nodes(): Promise<readonly ClusterNode[]>
  /**
   * Takes free shards, and shards of dead nodes, until this node owns its share. Each worker that lives has the same share, rounded up.
   * A node that owns more releases the surplus itself.
   */
  claimShards(): Promise<ShardClaim>
  /** Resolves when another claim may take something: soon after a lease was released or a node came or left, and at least every 0.5 s. */
  changed(signal: AbortSignal): Promise<void>
  /**
   * Lists the unfinished messages of the sessions of these messages, oldest first. A node that another one stores messages for enters
   * them in this order.
   */
  messagesBeside(numbers: readonly number[]): Promise<readonly WaitingMessage[]>
  /** Replaces the report of this node. */
  report(report: NodeReport): Promise<void>
  /** Asks a node to own nothing (`true`), or ends that. Resolves to false when no node of this name is known. */
  drain(node: string, isDrained: boolean): Promise<boolean>
  /** Makes all nodes compare their shards with their share now. */
  rebalance(): Promise<void>
  /** Reports that this process is stopping, so that other nodes take its share. */
  leave(): Promise<void>
}
