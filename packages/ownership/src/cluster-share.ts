/** The shards of a node of a cluster: its share, which grows and shrinks as other nodes come and go. */
import { type Backoff, backoffMs } from '@sluice/kit'
import type { Clock, ClusterRole, ClusterStore, LeaseName, Logger } from '@sluice/sdk'
import type { HeldShards } from './held-shards.ts'
import type { ShardSource } from './shard-source.ts'

const CLAIM_AGAIN: Backoff = { firstMs: 200, longestMs: 2_000 }

export interface ClusterShareOptions {
  readonly cluster: Pick<ClusterStore, 'claimShards' | 'changed' | 'leave' | 'roles'>
  readonly clock: Clock
  readonly log: Logger
  readonly held: HeldShards
  /** Tells whether this node may hold leases of leaders and connections. */
  readonly allow: (isAllowed: boolean) => void
  /** Aborts when the process stops. */
  readonly stopping: AbortSignal
}

export class ClusterShare implements ShardSource {
  readonly #options: ClusterShareOptions
  readonly ownsAll = false
  #share = 0
  #isHandingOver = false
  #serving: Promise<void> | undefined

  constructor(options: ClusterShareOptions) {
    this.#options = options
  }

  get wanted(): number {
    return Math.min(this.#options.held.size, this.#share)
  }

  get share(): number {
    return this.#share
  }

  hasRoleFor(name: LeaseName): boolean {
    return this.#options.cluster.roles.includes(roleFor(name))
  }

  async start(): Promise<void> {
    await this.#claim()
    this.#serving = this.#keepShare()
  }

  async handOver(): Promise<void> {
    if (this.#isHandingOver) return
    const { allow, cluster, held, log } = this.#options
    this.#isHandingOver = true
    allow(false)
    const leaving = cluster.leave().catch((error: unknown) => log.warn('the stop of this node was not announced', { error }))
    await Promise.all([leaving, held.leaveAll()])
  }

  async ended(): Promise<void> {
    await this.#serving
  }

  /** Keeps this node's share of the shards until the stop. */
  async #keepShare(): Promise<void> {
    const { cluster, clock, log, stopping } = this.#options
    for (let failures = 0; !stopping.aborted; ) {
      await cluster.changed(stopping)
      if (stopping.aborted || this.#isHandingOver) return
      try {
        await this.#claim()
        failures = 0
      } catch (error) {
        if (stopping.aborted) return
        log.warn('shards not claimed: the next attempt follows', { error })
        await clock.sleep(backoffMs(failures++, CLAIM_AGAIN), stopping)
      }
    }
  }

  /** Takes what is missing of the share, and begins to give up what is too much. */
  async #claim(): Promise<void> {
    const { allow, cluster, held, log, stopping } = this.#options
    const { share, taken, isDrained } = await cluster.claimShards()
    this.#share = share
    if (!this.#isHandingOver) allow(!isDrained)
    if (stopping.aborted || this.#isHandingOver) await Promise.all(taken.map((lease) => lease.release()))
    else if (taken.length > 0) {
      const takenUp = held.takeUp(taken)
      log.info('shards acquired', { shards: taken.length })
      await takenUp
    }
    const surplus = held.staying().slice(share)
    if (surplus.length === 0) return
    log.info('giving shards to other nodes', { shards: surplus.length, kept: share })
    for (const owned of surplus) void held.leave(owned)
  }
}

const roleFor = (name: LeaseName): ClusterRole => (name.startsWith('channel/') ? 'channels' : 'worker')
