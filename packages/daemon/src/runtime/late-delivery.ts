/** The delivery queues of a runtime, which start after it: until then, nothing waits and nothing needs a wake-up. */
import type { DeliveryQueues, QueuedReply } from '@sluice/delivery'

export class LateDelivery implements DeliveryQueues {
  #queues: DeliveryQueues | undefined

  /** Forwards every later call to `queues`. */
  start(queues: DeliveryQueues): void {
    this.#queues = queues
  }

  readonly load = (): ReturnType<DeliveryQueues['load']> => this.#queues?.load() ?? { messages: 0, replies: 0 }

  readonly ages = (): ReturnType<DeliveryQueues['ages']> => this.#queues?.ages() ?? { messageSecs: 0, replySecs: 0 }

  readonly wake = (): void => this.#queues?.wake()

  readonly queued = (replies: readonly QueuedReply[]): void => this.#queues?.queued(replies)
}
