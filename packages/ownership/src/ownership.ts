/**
 * What this process owns: the shards whose work it recovers and runs, and the leases of leaders and connections
 * (docs/contract.md#ownership). A process that has the store to itself owns all shards from its start to its stop. A node of a cluster
 * owns its share, and gives shards up without interrupting what runs in them.
 */

import { type Backoff, backoffMs, signalScope } from '@sluice/kit'
import {
  ALL_SHARDS,
  type Clock,
  type ClusterRole,
  type ClusterStore,
  isLeaseLost,
  type Lease,
  type LeaseName,
  type Logger,
  type OwnedStore,
  SHARDS,
  type ShardRange,
  type Store,
  type StoreChange,
  shardsLease,
} from '@sluice/sdk'

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
   * whose listener rejects is released and acquired again. `leave` is called before this process gives up a lease that it still holds:
   * it begins nothing more there, and resolves once what runs has ended.
   */
  onShards(listener: ShardListener, leave?: ShardListener): Promise<() => void>
  /**
   * Runs `work` while this process holds the lease, again after each loss, until `signal` aborts. The signal of `work` aborts with the
   * lease. An error of `work` is logged. Never rejects.
   */
  whileHolding(name: LeaseName, work: (owned: OwnedStore, signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>
}

export interface ShardOwnershipOptions {
  /** With `cluster`, this process shares the shards with other nodes. */
  readonly store: Pick<Store, 'leases' | 'under' | 'cluster'>
  readonly clock: Clock
  readonly log: Logger
  /** The shards that this process acquires; all unless given. A node of a cluster acquires its share instead. */
  readonly ranges?: readonly ShardRange[]
}

/** Two processes that take leases from each other do it no faster than this. */
const REACQUIRE: Backoff = { firstMs: 1000, longestMs: 60_000 }
/** After a lease that was held this long, the backoff begins again with its first delay. */
const STABLE_MS = 60_000

const CLAIM_AGAIN: Backoff = { firstMs: 200, longestMs: 2_000 }

interface Listening {
  readonly take: ShardListener
  readonly leave: ShardListener | undefined
}

/** Owns nothing before `start` and after `stop`. */
export class ShardOwnership implements Ownership {
  readonly #options: ShardOwnershipOptions
  readonly #ranges: readonly ShardRange[]
  readonly #stopping = new AbortController()
  readonly #held = new Map<Lease, OwnedStore>()
  /** The holder of each shard, except of those that are being given up. */
  readonly #byShard: (OwnedStore | undefined)[] = Array.from({ length: SHARDS })
  /** The leases that are being given up, each with the promise of its release. */
  readonly #leaving = new Map<OwnedStore, Promise<void>>()
  readonly #listeners = new Set<Listening>()
  /** The number of shards that this node of a cluster should own. */
  #share = 0
  /** Aborts when this node may hold nothing; another one replaces it once it may again. */
  #allowed = new AbortController()
  #allowedAgain = Promise.withResolvers<void>()
  #isHandingOver = false
  #serving: Promise<void>[] = []
  /** The work of `whileHolding` that has not ended, with its lease. */
  readonly #holding = new Map<Promise<void>, LeaseName>()
  #isStarted = false

  constructor(options: ShardOwnershipOptions) {
    this.#options = options
    this.#ranges = options.ranges ?? [ALL_SHARDS]
  }

  get isStarted(): boolean {
    return this.#isStarted
  }

  get ownsAll(): boolean {
    return !this.#cluster && this.#ranges.length === 1 && this.#ranges[0]?.from === ALL_SHARDS.from && this.#ranges[0].to === ALL_SHARDS.to
  }

  get #cluster(): ClusterStore | undefined {
    return this.#options.store.cluster
  }

  /** Counts the shard leases that are held now, and those that this process wants. */
  leases(): { readonly held: number; readonly wanted: number } {
    const held = this.#held.size
    return { held, wanted: this.#cluster ? Math.min(held, this.#share) : this.#ranges.length }
  }

  /** The leases of `whileHolding` whose work has not ended. */
  get holding(): readonly LeaseName[] {
    return [...this.#holding.values()]
  }

  /** The number of shards that this node should own; undefined without a cluster. */
  get share(): number | undefined {
    return this.#cluster && this.#share
  }

  /** Resolves once every range is held. A node of a cluster waits for no other node: its share grows as others give shards up. */
  async start(): Promise<void> {
    const { signal } = this.#stopping
    const cluster = this.#cluster
    if (cluster) {
      await this.#claim(cluster)
      this.#serving.push(this.#keepShare(cluster))
      this.#isStarted = true
      return
    }
    const first = this.#ranges.map((range) => this.#options.store.leases.acquire(shardsLease(range), signal))
    for (const lease of await Promise.all(first)) this.#serving.push(this.#serve(lease))
    this.#isStarted = true
  }

  /**
   * Begins to give up everything that this node of a cluster holds: at once what is idle, and the rest as its work ends. Resolves once
   * all is released. Never rejects. Without a cluster nothing happens.
   */
  async handOver(): Promise<void> {
    const cluster = this.#cluster
    if (!cluster || this.#isHandingOver || !this.#isStarted) return
    this.#isHandingOver = true
    this.#allow(false)
    await Promise.all([
      cluster.leave().catch((error: unknown) => this.#options.log.warn('the stop of this node was not announced', { error })),
      ...this.#staying().map((owned) => this.#leave(owned)),
      ...this.#leaving.values(),
    ])
  }

  /** Ends the work of `whileHolding` and releases all leases. Call it after the work of the shards has ended. Never rejects: a lease that cannot be released is taken over. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#holding.keys())
    const releases = [...this.#held.keys()].map((lease) =>
      lease.release().catch((error: unknown) => this.#options.log.warn('lease not released', { lease: lease.name, error })),
    )
    await Promise.all(releases)
    await Promise.all(this.#serving)
    this.#serving = []
  }

  of(shard: number): OwnedStore | undefined {
    return this.#byShard[shard]
  }

  held(change?: StoreChange): readonly OwnedStore[] {
    return this.#staying().filter((owned) => !change || concerns(change, owned))
  }

  async onShards(listener: ShardListener, leave?: ShardListener): Promise<() => void> {
    const taken = new WeakSet<OwnedStore>()
    // A lease that is acquired again while this listener registers would else reach it twice.
    const take: ShardListener = async (owned) => {
      if (taken.has(owned)) return
      taken.add(owned)
      await listener(owned)
    }
    const own: Listening = { take, leave: leave && (async (owned) => (taken.has(owned) ? leave(owned) : undefined)) }
    this.#listeners.add(own)
    await Promise.all(this.held().map(take))
    return () => void this.#listeners.delete(own)
  }

  whileHolding(name: LeaseName, work: (owned: OwnedStore, signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    const holding = this.#keepHolding(name, work, signal).finally(() => this.#holding.delete(holding))
    this.#holding.set(holding, name)
    return holding
  }

  async #keepHolding(name: LeaseName, work: (owned: OwnedStore, signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { store, clock, log } = this.#options
    using scope = signalScope([signal, this.#stopping.signal])
    if (!this.#hasRoleFor(name)) return hasAborted(scope.signal)
    for (let losses = 0; !scope.signal.aborted; losses++) {
      await this.#untilAllowed(scope.signal)
      if (scope.signal.aborted) return
      const startedMs = clock.monotonicMs()
      const allowed = this.#allowed.signal
      using either = signalScope([scope.signal, allowed])
      try {
        const lease = await store.leases.acquire(name, either.signal)
        await workUnder(lease, (ended) => work(store.under(lease), ended), either.signal)
      } catch (error) {
        if (!either.signal.aborted && !isLeaseLost(error)) log.error('work under a lease failed', { lease: name, error })
      }
      if (!either.signal.aborted) log.info('lease lost or work ended: taking the lease again', { lease: name })
      if (scope.signal.aborted) return
      if (allowed.aborted) continue
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
        await hasAborted(lease.lost)
        this.#forget(lease)
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
      for (const { take } of this.#listeners) await take(owned)
      return lease
    } catch (error) {
      if (!this.#stopping.signal.aborted) log.error('shards not acquired', { lease: name, error })
      const failed = [...this.#held.keys()].find((lease) => lease.name === name)
      if (failed) this.#forget(failed)
      await failed?.release().catch(() => undefined)
      return undefined
    }
  }

  #hold(lease: Lease): OwnedStore {
    const owned = this.#options.store.under(lease)
    this.#held.set(lease, owned)
    this.#setHolder(lease, owned)
    lease.lost.addEventListener('abort', () => this.#forget(lease), { once: true })
    return owned
  }

  #forget(lease: Lease): void {
    const owned = this.#held.get(lease)
    this.#held.delete(lease)
    if (owned) this.#clearHolder(owned)
  }

  #setHolder({ shards }: Lease, owned: OwnedStore): void {
    if (shards) this.#byShard.fill(owned, shards.from, shards.to + 1)
  }

  #clearHolder(owned: OwnedStore): void {
    const { shards } = owned.lease
    for (let shard = shards?.from ?? 0; shards && shard <= shards.to; shard++)
      if (this.#byShard[shard] === owned) this.#byShard[shard] = undefined
  }

  /** Returns the stores of the leases that are not being given up. */
  #staying(): readonly OwnedStore[] {
    return [...this.#held.values()].filter((owned) => !this.#leaving.has(owned))
  }

  /** Keeps this node's share of the shards until the stop. */
  async #keepShare(cluster: ClusterStore): Promise<void> {
    const { clock, log } = this.#options
    const { signal } = this.#stopping
    for (let failures = 0; !signal.aborted; ) {
      await cluster.changed(signal)
      if (signal.aborted || this.#isHandingOver) return
      try {
        await this.#claim(cluster)
        failures = 0
      } catch (error) {
        if (signal.aborted) return
        log.warn('shards not claimed: the next attempt follows', { error })
        await clock.sleep(backoffMs(failures++, CLAIM_AGAIN), signal)
      }
    }
  }

  /** Takes what is missing of the share, and begins to give up what is too much. */
  async #claim(cluster: ClusterStore): Promise<void> {
    const { share, taken, isDrained } = await cluster.claimShards()
    this.#share = share
    if (!this.#isHandingOver) this.#allow(!isDrained)
    if (taken.length > 0) await this.#takeUp(taken)
    const staying = this.#staying()
    const surplus = staying.slice(share)
    if (surplus.length === 0) return
    this.#options.log.info('giving shards to other nodes', { shards: surplus.length, kept: share })
    for (const owned of surplus) void this.#leave(owned)
  }

  /** Gives new leases to the listeners, all at once, so that they can read the work of all shards together. */
  async #takeUp(leases: readonly Lease[]): Promise<void> {
    const { log } = this.#options
    if (this.#stopping.signal.aborted || this.#isHandingOver) {
      await Promise.all(leases.map((lease) => lease.release()))
      return
    }
    const owned = leases.map((lease) => this.#hold(lease))
    log.info('shards acquired', { shards: owned.length })
    for (const { take } of this.#listeners) {
      const begun = owned.filter(({ lease }) => !lease.lost.aborted)
      const results = await Promise.allSettled(begun.map(take))
      const failed = begun.flatMap(({ lease }, at) => (results[at]?.status === 'rejected' && !lease.lost.aborted ? [lease] : []))
      const reason = results.find((result) => result.status === 'rejected')?.reason
      if (failed.length > 0) log.error('shards not acquired', { shards: failed.length, error: reason })
      await Promise.all(failed.map((lease) => lease.release().catch(() => undefined)))
    }
  }

  /** Gives up a lease once nothing runs under it. Never rejects. */
  #leave(owned: OwnedStore): Promise<void> {
    const known = this.#leaving.get(owned)
    if (known) return known
    this.#clearHolder(owned)
    const left = this.#leaveIdle(owned).finally(() => this.#leaving.delete(owned))
    this.#leaving.set(owned, left)
    return left
  }

  async #leaveIdle({ lease }: OwnedStore): Promise<void> {
    const { log } = this.#options
    const owned = this.#held.get(lease)
    if (!owned) return
    try {
      await Promise.all([...this.#listeners].map(({ leave }) => leave?.(owned)))
    } catch (error) {
      log.error('work of a shard that is given up cannot be ended', { lease: lease.name, error })
    }
    await lease.release().catch((error: unknown) => log.warn('lease not released', { lease: lease.name, error }))
  }

  /** Lets `whileHolding` take leases, or ends what it holds. */
  #allow(isAllowed: boolean): void {
    if (isAllowed !== this.#allowed.signal.aborted) return
    if (!isAllowed) {
      this.#allowed.abort()
      return
    }
    this.#allowed = new AbortController()
    this.#allowedAgain.resolve()
    this.#allowedAgain = Promise.withResolvers()
  }

  async #untilAllowed(signal: AbortSignal): Promise<void> {
    if (this.#allowed.signal.aborted) await Promise.race([this.#allowedAgain.promise, hasAborted(signal)])
  }

  #hasRoleFor(name: LeaseName): boolean {
    return this.#cluster?.roles.includes(roleFor(name)) ?? true
  }
}

const roleFor = (name: LeaseName): ClusterRole => (name.startsWith('channel/') ? 'channels' : 'worker')

/** Whether the change may concern the shards of the lease. */
export function concerns({ shards: changed, among }: StoreChange, { lease: { shards } }: Pick<OwnedStore, 'lease'>): boolean {
  if (among && shards?.from === shards?.to) return shards !== null && among.has(shards.from)
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

const hasAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
