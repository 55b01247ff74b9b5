/**
 * What this process owns: the shards whose work it recovers and runs, and the leases of leaders and connections
 * (docs/contract.md#ownership). A process that has the store to itself owns all shards from its start to its stop.
 */
import {
  ALL_SHARDS,
  type Clock,
  isLeaseLost,
  type Lease,
  type LeaseName,
  type Logger,
  type OwnedStore,
  type ShardRange,
  type Store,
  type StoreChange,
  shardsLease,
} from '@sluice/sdk'
import { type Backoff, backoffMs } from './backoff.ts'
import { signalScope } from './signal-scope.ts'

/** Takes up the work of the shards of a lease. The work must end when `owned.lease.lost` aborts. */
export type ShardListener = (owned: OwnedStore) => Promise<void>

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
   * an unsubscribe function once the listener has taken up the leases held now, and rejects as the listener does. A later lease
   * whose listener rejects is released and acquired again.
   */
  onShards(listener: ShardListener): Promise<() => void>
  /**
   * Runs `work` while this process holds the lease, again after each loss, until `signal` aborts. The signal of `work` aborts with the
   * lease. An error of `work` is logged. Never rejects.
   */
  whileHolding(name: LeaseName, work: (owned: OwnedStore, signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>
}

export interface ShardOwnershipOptions {
  readonly store: Pick<Store, 'leases' | 'under'>
  readonly clock: Clock
  readonly log: Logger
  /** The shards that this process acquires; all unless given. */
  readonly ranges?: readonly ShardRange[]
}

/** Two processes that take leases from each other do it no faster than this. */
const REACQUIRE: Backoff = { firstMs: 1000, longestMs: 60_000 }
/** After a lease that was held this long, the backoff begins again with its first delay. */
const STABLE_MS = 60_000

/** Owns nothing before `start` and after `stop`. */
export class ShardOwnership implements Ownership {
  readonly #options: ShardOwnershipOptions
  readonly #ranges: readonly ShardRange[]
  readonly #stopping = new AbortController()
  readonly #held = new Map<Lease, OwnedStore>()
  readonly #listeners = new Set<ShardListener>()
  #serving: Promise<void>[] = []
  /** The work of `whileHolding` that has not ended. */
  readonly #holding = new Set<Promise<void>>()
  #isStarted = false

  constructor(options: ShardOwnershipOptions) {
    this.#options = options
    this.#ranges = options.ranges ?? [ALL_SHARDS]
  }

  get isStarted(): boolean {
    return this.#isStarted
  }

  get ownsAll(): boolean {
    return this.#ranges.length === 1 && this.#ranges[0]?.from === ALL_SHARDS.from && this.#ranges[0].to === ALL_SHARDS.to
  }

  /** Counts the shard leases that are held now, and those that this process wants. */
  leases(): { readonly held: number; readonly wanted: number } {
    return { held: this.#held.size, wanted: this.#ranges.length }
  }

  /** Resolves once every range is held. */
  async start(): Promise<void> {
    const { signal } = this.#stopping
    const first = this.#ranges.map((range) => this.#options.store.leases.acquire(shardsLease(range), signal))
    for (const lease of await Promise.all(first)) this.#serving.push(this.#serve(lease))
    this.#isStarted = true
  }

  /** Ends the work of `whileHolding` and releases all leases. Call it after the work of the shards has ended. Never rejects: a lease that cannot be released is taken over. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#holding)
    const releases = [...this.#held.keys()].map((lease) =>
      lease.release().catch((error: unknown) => this.#options.log.warn('lease not released', { lease: lease.name, error })),
    )
    await Promise.all(releases)
    await Promise.all(this.#serving)
    this.#serving = []
  }

  of(shard: number): OwnedStore | undefined {
    for (const [{ shards }, owned] of this.#held) if (shards && shard >= shards.from && shard <= shards.to) return owned
    return undefined
  }

  held(change?: StoreChange): readonly OwnedStore[] {
    return [...this.#held.values()].filter((owned) => !change || concerns(change, owned))
  }

  async onShards(listener: ShardListener): Promise<() => void> {
    const taken = new WeakSet<OwnedStore>()
    // A lease that is acquired again while this listener registers would else reach it twice.
    const own: ShardListener = async (owned) => {
      if (taken.has(owned)) return
      taken.add(owned)
      await listener(owned)
    }
    this.#listeners.add(own)
    for (const owned of this.held()) await own(owned)
    return () => void this.#listeners.delete(own)
  }

  whileHolding(name: LeaseName, work: (owned: OwnedStore, signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    const holding = this.#keepHolding(name, work, signal).finally(() => this.#holding.delete(holding))
    this.#holding.add(holding)
    return holding
  }

  async #keepHolding(name: LeaseName, work: (owned: OwnedStore, signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { store, clock, log } = this.#options
    using scope = signalScope([signal, this.#stopping.signal])
    for (let losses = 0; !scope.signal.aborted; losses++) {
      const startedMs = clock.monotonicMs()
      try {
        const lease = await store.leases.acquire(name, scope.signal)
        await workUnder(lease, (ended) => work(store.under(lease), ended), scope.signal)
      } catch (error) {
        if (!scope.signal.aborted && !isLeaseLost(error)) log.error('work under a lease failed', { lease: name, error })
      }
      if (scope.signal.aborted) return
      if (clock.monotonicMs() - startedMs >= STABLE_MS) losses = 0
      await clock.sleep(backoffMs(losses, REACQUIRE), scope.signal)
    }
  }

  /** Holds the shards of a lease until the stop, by further leases of the same name after each loss. */
  async #serve(first: Lease): Promise<void> {
    const { clock, log, store } = this.#options
    const { signal } = this.#stopping
    let lease: Lease | undefined = first
    this.#hold(lease)
    for (let losses = 0; ; losses++) {
      const startedMs = clock.monotonicMs()
      if (lease) {
        await untilLost(lease)
        this.#held.delete(lease)
        if (signal.aborted) return
        log.error('shards lost: another process has taken them over', { lease: lease.name })
      }
      if (clock.monotonicMs() - startedMs >= STABLE_MS) losses = 0
      await clock.sleep(backoffMs(losses, REACQUIRE), signal)
      if (signal.aborted) return
      lease = await this.#acquireAgain(first.name, store.leases)
      if (signal.aborted) await lease?.release()
    }
  }

  async #acquireAgain(name: LeaseName, leases: Store['leases']): Promise<Lease | undefined> {
    const { log } = this.#options
    try {
      const lease = await leases.acquire(name, this.#stopping.signal)
      const owned = this.#hold(lease)
      log.info('shards acquired again', { lease: name })
      for (const listener of this.#listeners) await listener(owned)
      return lease
    } catch (error) {
      if (!this.#stopping.signal.aborted) log.error('shards not acquired', { lease: name, error })
      const failed = [...this.#held.keys()].find((lease) => lease.name === name)
      if (failed) this.#held.delete(failed)
      await failed?.release().catch(() => undefined)
      return undefined
    }
  }

  #hold(lease: Lease): OwnedStore {
    const owned = this.#options.store.under(lease)
    this.#held.set(lease, owned)
    lease.lost.addEventListener('abort', () => this.#held.delete(lease), { once: true })
    return owned
  }
}

/** Whether the change may concern the shards of the lease. */
export function concerns({ shards: changed }: StoreChange, { lease: { shards } }: Pick<OwnedStore, 'lease'>): boolean {
  return changed === null || (shards !== null && shards.from <= changed.to && changed.from <= shards.to)
}

async function workUnder(lease: Lease, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
  using scope = signalScope([signal, lease.lost])
  try {
    await work(scope.signal)
  } finally {
    await lease.release()
  }
}

const untilLost = ({ lost }: Lease): Promise<void> =>
  new Promise((resolve) => {
    if (lost.aborted) resolve()
    else lost.addEventListener('abort', () => resolve(), { once: true })
  })
