/**
 * The leases of a database. A lease is held while its row exists, and it is alive while its process beats, by the clock of the database.
 * A process takes over the leases of a dead one. A later process of the same node asks the earlier one to release them, because the lock of
 * the data directory says that it has ended or is about to end.
 */

import { endsWithin, systemClock } from '@sluice/kit'
import { type Lease, type LeaseName, type LeaseStore, type StoreChange, shardsLease, shardsOf } from '@sluice/sdk'
import { type ConnectionSettings, sql } from '../connection/connection.ts'
import type { Fence, GroupCommit, Kind } from '../connection/group-commit.ts'
import { closedError } from '../connection/postgres-error.ts'
import { changeOf } from '../connection/work-notices.ts'
import { HeldLease } from './held-lease.ts'
import { LeaseWaiters } from './lease-waiters.ts'
import { Membership, type ProcessOptions, TTL_MS } from './membership.ts'
import { FREED, type Notice, NoticeLine } from './notice-line.ts'
import { END, LOCK, type Taker, takeFreeShards, takeLease } from './take-leases.ts'

/** How long a later process of a node waits for an earlier one to answer. */
const HANDOVER_MS = 1_000
/** Releases at the same time share one notice. */
const NOTICE_MS = 5

const HELD = `SELECT epoch, name LIKE 'session/%' AS "isSession" FROM leases WHERE process = $1`
const LEAVE = ['DELETE FROM leases WHERE process = $1', 'DELETE FROM processes WHERE id = $1']

export interface LeasesOptions extends ProcessOptions {
  readonly settings: ConnectionSettings
  readonly commits: GroupCommit
  /** Gets each notice. Must not throw. */
  readonly heard: (message: { readonly what?: unknown }) => void
}

/** Releases that are requested at the same time are one statement. */
const RELEASE: Kind<number, undefined> = {
  keys: () => [],
  statements: (epochs) => [sql(END, epochs)],
  results: (epochs) => epochs.map(() => undefined),
  readAgain: () => [],
}

export class Leases implements LeaseStore {
  readonly #options: LeasesOptions
  readonly #held = new Map<number, HeldLease>()
  readonly #membership: Membership
  readonly #line: NoticeLine
  readonly #waiters: LeaseWaiters
  readonly #taker: Taker
  #isClosed = false
  /** Leases whose rows are being deleted. */
  readonly #ending = new Set<number>()
  /** The number of times that leases were taken, and how often that is under way. */
  #takes = 0
  #takesUnderWay = 0
  /** The shards that this process holds as leases of one shard each. */
  readonly #shards = new Set<number>()
  #onWork: (change: StoreChange) => void = () => {}
  #noticing: NodeJS.Timeout | undefined

  constructor(options: LeasesOptions) {
    const { db, log, node, process, settings } = options
    this.#options = options
    this.#waiters = new LeaseWaiters({ db, process, node })
    this.#line = new NoticeLine({ settings, db, log, isClosed: () => this.#isClosed, heard: (notice) => this.#heard(notice) })
    this.#taker = { db, process, node, channel: this.#line.channel }
    this.#membership = new Membership({
      ...options,
      onDoubt: () => this.#loseTakenMeanwhile(),
      onBeat: () => {
        void this.loseTaken().catch(() => undefined)
        this.#line.probe()
      },
    })
  }

  async acquire(name: LeaseName, signal?: AbortSignal): Promise<Lease> {
    signal?.throwIfAborted()
    const shards = shardsOf(name)
    await this.start()
    const startedMs = performance.now()
    for (;;) {
      const isForced = performance.now() - startedMs > HANDOVER_MS
      const taken = await this.#taking(async () => {
        const found = await takeLease(this.#taker, { name, shards, isForced }, (epoch) => this.#held.get(epoch)?.lose())
        return 'epoch' in found ? await this.#grant({ name, epoch: found.epoch, shards }, signal) : found
      })
      if (!('blockers' in taken)) return taken
      await this.#waiters.untilAvailable(name, shards, taken.blockers, signal)
      signal?.throwIfAborted()
      if (this.#isClosed) throw closedError()
    }
  }

  /** Returns a lease that this store granted as what its writes are checked by. Throws for any other. */
  fenceOf(lease: Lease): Fence {
    if (lease instanceof HeldLease && lease.owner === this) return lease
    throw new Error(`the lease ${lease.name} was not granted by this store`)
  }

  get isAlive(): boolean {
    return this.#membership.isAlive
  }

  get beatAgeMs(): number {
    return this.#membership.beatAgeMs
  }

  /** Begins to beat and to listen, with the first lease. */
  async start(): Promise<void> {
    if (this.#isClosed) throw closedError()
    await this.#membership.begin()
    await this.#line.listen()
  }

  /** Releases every lease at once, so that other processes need not wait for the end of this one's beats. */
  async leave(): Promise<void> {
    this.#isClosed = true
    this.#membership.close()
    for (const lease of [...this.#held.values()]) lease.lose()
    // After the life of a lease, other processes take it over anyway, so the stop waits no longer for a database that does not answer.
    await endsWithin(this.#giveUp(), TTL_MS, systemClock)
    this.#waiters.close()
    await this.#line.close()
  }

  /** Resolves when a lease was released or a process came or left, and soon in any case. */
  changed(signal: AbortSignal): Promise<void> {
    return this.#waiters.changed(signal)
  }

  /** Begins to receive notices. */
  listen(): Promise<void> {
    return this.#line.listen()
  }

  /** Sends a notice to all processes, such as that leases were released. Never rejects. */
  notify(notice: Notice): Promise<void> {
    return this.#line.notify(notice)
  }

  /**
   * Notices the leases that another holder has taken over. Ends the rows of a release, or of a lease that was taken, whose
   * result did not arrive: while this process lives, no other process could take them.
   */
  async loseTaken(): Promise<void> {
    const { db, process, cluster } = this.#options
    if (this.#held.size === 0 && !cluster) return
    const asked = [...this.#held.keys()]
    const takes = this.#takes
    const rows = await db.all<{ epoch: number; isSession: boolean }>(HELD, process)
    this.#loseMissing(asked, rows)
    if (this.#isClosed || this.#takesUnderWay > 0 || takes !== this.#takes) return
    const left = rows.filter(({ epoch, isSession }) => !isSession && !this.#held.has(epoch) && !this.#ending.has(epoch))
    for (const { epoch } of left) await this.#endRow(epoch)
  }

  /**
   * Loses the leases that others have taken because this process seemed dead, also the ones that they are about to take. A taker of a
   * lease finds the beats of before under the same lock.
   */
  async #loseTakenMeanwhile(): Promise<void> {
    const asked = [...this.#held.keys()]
    if (asked.length === 0) return
    const rows = await this.#options.db.writer.transaction(async (tx) => {
      await tx.all(LOCK)
      return tx.all<{ epoch: number }>(HELD, this.#options.process)
    })
    this.#loseMissing(asked, rows)
  }

  #loseMissing(asked: readonly number[], rows: readonly { readonly epoch: number }[]): void {
    const held = new Set(rows.map(({ epoch }) => epoch))
    for (const epoch of asked) if (!held.has(epoch)) this.#held.get(epoch)?.lose()
  }

  /** Holds a lease whose row another statement has written. `end` deletes the row. */
  hold(about: Pick<Lease, 'name' | 'epoch' | 'shards'>, end?: () => Promise<void>): HeldLease {
    const lease = new HeldLease(this, about, end)
    this.#held.set(about.epoch, lease)
    return lease
  }

  holds(epoch: number): boolean {
    return this.#held.has(epoch)
  }

  /** Ends a lease after the writes that were requested under it. */
  async end(lease: HeldLease): Promise<void> {
    await (lease.endOwn ? lease.endOwn() : this.#endRow(lease.epoch))
  }

  async #endRow(epoch: number): Promise<void> {
    this.#ending.add(epoch)
    try {
      await this.#options.db.writer.add(RELEASE, epoch)
    } finally {
      this.#ending.delete(epoch)
    }
    this.#noticing ??= setTimeout(() => {
      this.#noticing = undefined
      void this.notify(FREED)
    }, NOTICE_MS).unref()
  }

  /** Takes leases by `take`, which puts them among the held ones before it resolves. */
  async #taking<T>(take: () => Promise<T>): Promise<T> {
    this.#takes++
    this.#takesUnderWay++
    try {
      return await take()
    } finally {
      this.#takesUnderWay--
    }
  }

  get shardsHeld(): number {
    return [...this.#held.values()].reduce((count, { shards }) => count + (shards ? shards.to - shards.from + 1 : 0), 0)
  }

  owns(shard: number): boolean {
    return this.#shards.has(shard)
  }

  /** Calls `listener` with the work that other processes store for this one. */
  onWork(listener: (change: StoreChange) => void): void {
    this.#onWork = listener
  }

  forget(epoch: number): void {
    const shards = this.#held.get(epoch)?.shards
    if (shards) this.#shards.delete(shards.from)
    this.#held.delete(epoch)
  }

  async #grant(about: Pick<Lease, 'name' | 'epoch' | 'shards'>, signal: AbortSignal | undefined): Promise<Lease> {
    const lease = this.hold(about)
    if (!signal?.aborted) return lease
    await lease.release()
    throw signal.reason
  }

  /**
   * Takes at most `count` shards that are free, that belong to a dead process, or that an earlier process of this node has left. Resolves
   * to their leases, one for each shard.
   */
  takeShards(count: number): Promise<readonly Lease[]> {
    return this.#taking(() => this.#takeShards(count))
  }

  async #takeShards(count: number): Promise<readonly Lease[]> {
    const rows = await takeFreeShards(this.#taker, count, (epoch) => this.#held.has(epoch))
    return rows.map(({ epoch, shard }) => {
      const shards = { from: shard, to: shard }
      this.#shards.add(shard)
      return this.hold({ name: shardsLease(shards), epoch, shards })
    })
  }

  /** Never rejects. */
  async #giveUp(): Promise<void> {
    await this.#membership.idle()
    if (!this.#membership.hasBegun) return
    try {
      await this.#options.db.writer.write(...LEAVE.map((text) => sql(text, this.#options.process)))
      clearTimeout(this.#noticing)
      await this.notify(FREED)
    } catch (error) {
      this.#options.log.warn('leases not released: other processes take them over once they have expired', { error })
    }
  }

  #heard(notice: Notice): void {
    if (notice.what === 'work') {
      const change = changeOf(notice, (shard) => this.owns(shard))
      if (change) this.#onWork(change)
      return
    }
    const { what, epochs } = notice
    this.#options.heard(notice)
    if (what === 'free') this.#waiters.freed()
    if (what !== 'want') return
    for (const epoch of epochs)
      void this.#held
        .get(epoch)
        ?.release()
        .catch(() => undefined)
  }
}
