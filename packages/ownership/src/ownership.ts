/**
 * The ownership of this process: the shards whose work it recovers and runs, and the leases of leaders and connections
 * (docs/contract.md#ownership). A process that has the store to itself owns all shards from its start to its stop (`OwnRanges`). A node
 * of a cluster owns its share, and gives shards up without interrupting their running work (`ClusterShare`).
 */
import {
  ALL_SHARDS,
  type Clock,
  type LeaseName,
  type Logger,
  type OwnedStore,
  type ShardRange,
  type Store,
  type StoreChange,
} from '@sluice/sdk'
import { ClusterShare } from './cluster-share.ts'
import { HeldShards, type ShardListener } from './held-shards.ts'
import { HeldWork, type WorkUnderLease } from './held-work.ts'
import { OwnRanges } from './own-ranges.ts'
import type { ShardSource } from './shard-source.ts'

export interface Ownership {
  /** True once `start` has resolved. A process that never starts shares the store with a daemon and recovers nothing. */
  readonly isStarted: boolean
  /** True when no other process shares the work, so that nothing is stored that this process does not know of. */
  readonly ownsAll: boolean
  /** Returns the store for the work of this shard; undefined when this process does not own it now. */
  of(shard: number): OwnedStore | undefined
  /** Returns the store under each shard lease that is held now; with a change, only those with shards that it may concern. */
  held(change?: StoreChange): readonly OwnedStore[]
  /**
   * Calls `listener` for each shard lease held now, and for each later one, after the listeners that registered earlier. Resolves to
   * an unsubscribe function once the listener has resumed the work of the leases held now, and rejects as the listener does. A later lease
   * whose listener rejects is released and acquired again. `leave` is called before this process gives up a lease that it still holds:
   * it begins nothing more there, and resolves once what runs has ended.
   */
  onShards(listener: ShardListener, leave?: ShardListener): Promise<() => void>
  /**
   * Runs `work` while this process holds the lease, again after each loss, until `signal` aborts. The signal of `work` aborts with the
   * lease. An error of `work` is logged. Never rejects.
   */
  whileHolding(name: LeaseName, work: WorkUnderLease, signal: AbortSignal): Promise<void>
}

export interface ShardOwnershipOptions {
  /** With `cluster`, this process shares the shards with other nodes. */
  readonly store: Pick<Store, 'leases' | 'under' | 'cluster'>
  readonly clock: Clock
  readonly log: Logger
  /** The shards that this process acquires; all unless given. A node of a cluster acquires its share instead. */
  readonly ranges?: readonly ShardRange[]
}

/** Owns nothing before `start` and after `stop`. */
export class ShardOwnership implements Ownership {
  readonly #stopping = new AbortController()
  readonly #held: HeldShards
  readonly #work: HeldWork
  readonly #source: ShardSource
  #isStarted = false

  constructor({ store, clock, log, ranges = [ALL_SHARDS] }: ShardOwnershipOptions) {
    const stopping = this.#stopping.signal
    this.#held = new HeldShards({ store, log })
    this.#work = new HeldWork({ store, clock, log, stopping, mayTake: (name) => this.#source.hasRoleFor(name) })
    const given = { clock, log, held: this.#held, stopping }
    const { cluster, leases } = store
    this.#source = cluster
      ? new ClusterShare({ ...given, cluster, allow: (isAllowed) => this.#work.allow(isAllowed) })
      : new OwnRanges({ ...given, leases, ranges })
  }

  get isStarted(): boolean {
    return this.#isStarted
  }

  get ownsAll(): boolean {
    return this.#source.ownsAll
  }

  /** Counts the shard leases under which this process may act now, and the ones that it wants. */
  leases(): { readonly held: number; readonly wanted: number } {
    return { held: this.#held.inForce, wanted: this.#source.wanted }
  }

  /** The leases of `whileHolding` whose work has not ended. */
  get holding(): readonly LeaseName[] {
    return this.#work.names
  }

  get share(): number | undefined {
    return this.#source.share
  }

  /** Resolves once every range is held. A node of a cluster waits for no other node: its share grows as others give shards up. */
  async start(): Promise<void> {
    await this.#source.start()
    this.#isStarted = true
  }

  /**
   * Begins to give up everything that this node of a cluster holds: at once what is idle, and the rest as its work ends. Resolves once
   * all is released. Never rejects. A process that shares nothing keeps what it holds.
   */
  async handOver(): Promise<void> {
    if (this.#isStarted) await this.#source.handOver()
  }

  /** Ends the work of `whileHolding` and releases all leases. Call it after the work of the shards has ended. Never rejects: a lease that cannot be released is taken over. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#work.ended()
    await this.#held.release()
    await this.#source.ended()
  }

  of(shard: number): OwnedStore | undefined {
    return this.#held.of(shard)
  }

  held(change?: StoreChange): readonly OwnedStore[] {
    return this.#held.staying(change)
  }

  onShards(listener: ShardListener, leave?: ShardListener): Promise<() => void> {
    return this.#held.listen(listener, leave)
  }

  whileHolding(name: LeaseName, work: WorkUnderLease, signal: AbortSignal): Promise<void> {
    return this.#work.keep(name, work, signal)
  }
}
