/** Follows the events of turns and deliveries that concern open approvals. */
import type { EventEnvelope, Logger } from '@sluice/sdk'
import type { ApprovalEvents } from './events.ts'
import type { OpenApprovals } from './open-approvals.ts'
import { endUnreached, type UnreachedOptions } from './unreached.ts'

export interface EventFollowerOptions extends UnreachedOptions {
  readonly bus: ApprovalEvents
  readonly log: Logger
  readonly open: OpenApprovals
  /** Reads the store, which withdraws the approvals of a turn in the commit that ends it. */
  readonly look: () => Promise<void>
}

export class EventFollower {
  readonly #options: EventFollowerOptions
  #leave: (() => void) | undefined
  #isStopped = false

  constructor(options: EventFollowerOptions) {
    this.#options = options
  }

  /** Follows the bus only while an approval is open, because no event concerns it otherwise. Call it when that may have changed. */
  follow(): void {
    const { bus, open } = this.#options
    if (open.size > 0 && !this.#isStopped) this.#leave ??= bus.subscribe(({ envelope }) => this.#onEvent(envelope))
    else {
      this.#leave?.()
      this.#leave = undefined
    }
  }

  stop(): void {
    this.#isStopped = true
    this.follow()
  }

  #onEvent(event: EventEnvelope): void {
    const { log, open, look, store } = this.#options
    if (this.#mayWithdraw(event)) look().catch((error: unknown) => log.error('approvals of ended turns not read', { error }))
    if (event.type !== 'delivery' || event.direction !== 'outbound') return
    const asked = open.ofUnsentPrompt(event.number)
    if (asked && event.state === 'dead')
      endUnreached(this.#options, asked).catch((error: unknown) =>
        log.error('approval without a prompt not ended', { outbox: event.number, error }),
      )
    // The store has the platform's id of the prompt now, which replies refer to.
    if (asked && event.state === 'sent')
      open.readAgain(store, asked).catch((error: unknown) => log.warn('platform id of a prompt not read', { outbox: event.number, error }))
  }

  /** Whether the event may report the end of a turn with open approvals. */
  #mayWithdraw(event: EventEnvelope): boolean {
    const { open } = this.#options
    if (event.type === 'delivery') return event.direction === 'inbound' && event.state === 'dead' && open.size > 0
    if (event.type !== 'turn_completed' && event.type !== 'turn_failed') return false
    return [...open.values()].some(({ runId }) => runId === event.turn_id)
  }
}
