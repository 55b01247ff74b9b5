/** The shards of a process that no other process takes over: fixed ranges, from the start to the stop. */
import { backoffMs } from '@sluice/kit'
import { ALL_SHARDS, type Clock, type Lease, type LeaseName, type LeaseStore, type Logger, type ShardRange, shardsLease } from '@sluice/sdk'
import { hasAborted, REACQUIRE, STABLE_MS } from './acquire-again.ts'
import type { HeldShards } from './held-shards.ts'
import type { ShardSource } from './shard-source.ts'

export interface OwnRangesOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly leases: LeaseStore
  readonly ranges: readonly ShardRange[]
  readonly held: HeldShards
  /** Aborts when the process stops. */
  readonly stopping: AbortSignal
}

export class OwnRanges implements ShardSource {
  readonly #options: OwnRangesOptions
  readonly ownsAll: boolean
  readonly share = undefined
  #serving: readonly Promise<void>[] = []

  constructor(options: OwnRangesOptions) {
    const [first, ...others] = options.ranges
    this.#options = options
    this.ownsAll = others.length === 0 && first?.from === ALL_SHARDS.from && first.to === ALL_SHARDS.to
  }

  get wanted(): number {
    return this.#options.ranges.length
  }

  hasRoleFor(): boolean {
    return true
  }

  async start(): Promise<void> {
    const { leases, ranges, stopping } = this.#options
    const first = await Promise.all(ranges.map((range) => leases.acquire(shardsLease(range), stopping)))
    this.#serving = first.map((lease) => this.#serve(lease))
  }

  async handOver(): Promise<void> {}

  async ended(): Promise<void> {
    await Promise.all(this.#serving)
  }

  /** Holds the shards of a lease until the stop, by further leases of the same name after each loss. */
  async #serve(first: Lease): Promise<void> {
    const { clock, held, log, stopping } = this.#options
    let lease: Lease | undefined = first
    held.hold(first)
    for (let losses = 0; ; losses++) {
      const startedMs = clock.monotonicMs()
      if (lease) {
        await hasAborted(lease.lost)
        if (stopping.aborted) return
        log.error('shards lost: another process has taken them over', { lease: lease.name })
      }
      if (clock.monotonicMs() - startedMs >= STABLE_MS) losses = 0
      await clock.sleep(backoffMs(losses, REACQUIRE), stopping)
      if (stopping.aborted) return
      lease = await this.#acquireAgain(first.name)
      if (stopping.aborted) await lease?.release()
    }
  }

  /** Resolves to undefined for a lease that was not granted, or whose work could not begin. */
  async #acquireAgain(name: LeaseName): Promise<Lease | undefined> {
    const { held, leases, log, stopping } = this.#options
    try {
      const lease = await leases.acquire(name, stopping)
      log.info('shards acquired again', { lease: name })
      await held.takeUp([lease])
      return lease.lost.aborted ? undefined : lease
    } catch (error) {
      if (!stopping.aborted) log.error('shards not acquired', { lease: name, error })
      return undefined
    }
  }
}
