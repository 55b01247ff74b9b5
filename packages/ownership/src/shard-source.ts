import type { LeaseName } from '@sluice/sdk'

/** Where the shards of this process come from, and which of its leases it may take. */
export interface ShardSource {
  readonly ownsAll: boolean
  /** The number of shard leases that this process wants. */
  readonly wanted: number
  /** The number of shards that this node should own; undefined for a process that shares nothing. */
  readonly share: number | undefined
  /** Whether this process may take the lease of a leader or a connection. */
  hasRoleFor(name: LeaseName): boolean
  /** Resolves once the first shards are held. */
  start(): Promise<void>
  /** Gives up everything to other nodes, as its work ends. Never rejects. */
  handOver(): Promise<void>
  /** Resolves once no more shards are taken, after the stop. */
  ended(): Promise<void>
}
