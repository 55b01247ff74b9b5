/** The callers that wait for leases of other processes, and the callers that wait for any lease to change hands. */
import { EventEmitter } from 'node:events'
import type { LeaseName, ShardRange } from '@sluice/sdk'
import { columnsOf, type Database } from '../connection/database.ts'
import { TTL_MS } from './membership.ts'

/** How often a node looks for shards that it may take: a node that dies gives no notice. */
const CLAIM_MS = 500
/** How often leases that others hold are looked at, for a notice that was lost. */
const POLL_MS = 250
const HANDOVER_POLL_MS = 50

/** The wanted leases that no other process is in the way of. */
const AVAILABLE = `
  SELECT wanted.name FROM unnest($2::text[], $3::int[], $4::int[]) AS wanted (name, shard_from, shard_to)
  WHERE NOT EXISTS (
    SELECT 1 FROM leases JOIN processes ON processes.id = leases.process
    WHERE (leases.name = wanted.name OR (leases.shard_from <= wanted.shard_to AND leases.shard_to >= wanted.shard_from))
      AND processes.id <> $1 AND beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond')`

/** One lease that callers wait for. */
interface Wanted {
  readonly name: LeaseName
  readonly shards: ShardRange | null
  readonly wake: () => void
}

export interface LeaseWaitersOptions {
  readonly db: Database
  readonly process: string
  /** The name of the node. */
  readonly node: string
}

export class LeaseWaiters {
  readonly #options: LeaseWaitersOptions
  readonly #freed = new EventEmitter().setMaxListeners(0)
  readonly #wanted = new Set<Wanted>()
  #polling: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: LeaseWaitersOptions) {
    this.#options = options
  }

  /** Leases were released, or shares have changed: all who wait look again. */
  freed(): void {
    this.#freed.emit('free')
    this.#pollIn(0)
  }

  /** Ends all waits. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#polling)
    this.#freed.emit('free')
    for (const { wake } of this.#wanted) wake()
  }

  /** Resolves when a lease was released or a process came or left, and soon in any case. */
  async changed(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const end = (): void => resolve()
    const timer = setTimeout(end, CLAIM_MS)
    this.#freed.once('free', end)
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted || this.#isClosed) end()
    await promise
    clearTimeout(timer)
    this.#freed.off('free', end)
    signal.removeEventListener('abort', end)
  }

  /** Waits until the lease may be free. All who wait share one query, after each notice and four times a second. */
  async untilAvailable(
    name: LeaseName,
    shards: ShardRange | null,
    blockers: readonly { readonly node: string | null }[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    // Both may have happened while the lease was asked for.
    if (signal?.aborted || this.#isClosed) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const abort = (): void => resolve()
    const wanted: Wanted = { name, shards, wake: resolve }
    // An earlier process of this node answers soon, or has ended.
    const own = blockers.some(({ node }) => node === this.#options.node) ? setTimeout(resolve, HANDOVER_POLL_MS) : undefined
    this.#wanted.add(wanted)
    this.#pollIn(POLL_MS)
    signal?.addEventListener('abort', abort, { once: true })
    await promise
    signal?.removeEventListener('abort', abort)
    clearTimeout(own)
    this.#wanted.delete(wanted)
  }

  #pollIn(delayMs: number): void {
    clearTimeout(this.#polling)
    if (this.#isClosed || this.#wanted.size === 0) return
    this.#polling = setTimeout(() => void this.#poll(), delayMs).unref()
  }

  async #poll(): Promise<void> {
    const wanted = [...this.#wanted]
    const columns = columnsOf(
      wanted,
      ({ name }) => name,
      ({ shards }) => shards?.from ?? null,
      ({ shards }) => shards?.to ?? null,
    )
    try {
      const rows = await this.#options.db.all<{ name: LeaseName }>(AVAILABLE, this.#options.process, ...columns)
      const names = new Set(rows.map(({ name }) => name))
      for (const { name, wake } of wanted) if (names.has(name)) wake()
    } catch {
      // The next look repeats this one.
    }
    this.#pollIn(POLL_MS)
  }
}
