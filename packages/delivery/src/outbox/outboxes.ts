/** The outbox workers, one for each account, so that a slow platform delays no other. */
import type { OwnedStore, Waiting } from '@sluice/sdk'
import type { DeliveryOptions } from '../delivery-options.ts'
import { type Account, accountKey } from '../delivery-queue.ts'
import { OutboxWorker } from './outbox-worker.ts'

export class Outboxes {
  readonly #options: DeliveryOptions
  readonly #cutOff: AbortSignal
  /** The workers by account key; bounded by the number of accounts. */
  readonly #workers = new Map<string, OutboxWorker>()
  #isStopped = false

  /** Sends under way are cut off when `cutOff` aborts. */
  constructor(options: DeliveryOptions, cutOff: AbortSignal) {
    this.#options = options
    this.#cutOff = cutOff
  }

  /** The number of replies that run or wait. */
  get size(): number {
    return this.#queues.reduce((sum, { size }) => sum + size, 0)
  }

  /** How long the oldest reply has been in a queue. */
  get oldestMs(): number {
    return Math.max(0, ...this.#queues.map(({ oldestMs }) => oldestMs))
  }

  /** Queues a reply. Returns false for one that is queued already, and after the stop. */
  enter(reply: Waiting, owned: OwnedStore): boolean {
    return this.#of(reply).queue.enter(reply, owned)
  }

  /** Ends a reply; see `DeliveryQueue.ending`. */
  ending(reply: Waiting, end: () => Promise<void>): Promise<boolean> {
    return this.#of(reply).queue.ending(reply.number, end)
  }

  /** Removes the replies under a lost lease. Attempts under way end without effect. */
  drop(owned: OwnedStore): void {
    for (const queue of this.#queues) queue.drop(owned)
  }

  /** Resolves once no attempt under this lease is under way. */
  async idle(owned: OwnedStore): Promise<void> {
    await Promise.all(this.#queues.map((queue) => queue.idle(owned)))
  }

  /** Starts no more replies. Resolves once the attempts under way have ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#queues.map((queue) => queue.stop()))
  }

  get #queues(): readonly OutboxWorker['queue'][] {
    return [...this.#workers.values()].map(({ queue }) => queue)
  }

  #of(account: Account): OutboxWorker {
    const key = accountKey(account)
    const known = this.#workers.get(key)
    if (known) return known
    const worker = new OutboxWorker({ ...this.#options, channel: account.channel, cutOff: this.#cutOff })
    this.#workers.set(key, worker)
    // A turn may end while the daemon stops: its reply waits for the next start.
    if (this.#isStopped) void worker.queue.stop()
    return worker
  }
}
