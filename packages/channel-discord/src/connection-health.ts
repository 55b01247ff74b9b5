/** The health of the connection as the channel last observed it. Reading it makes no request. */
import type { ChannelHealth, Clock } from '@sluice/sdk'

export class ConnectionHealth {
  readonly #clock: Clock
  #current: ChannelHealth = { state: 'connecting' }

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get now(): ChannelHealth {
    return this.#current
  }

  connected(): void {
    this.#become('ok')
  }

  /**
   * The connection broke and is being opened again. A channel that is down stays down until it is connected, so that its state
   * does not flap with every attempt.
   */
  lost(): void {
    if (this.#current.state === 'ok') this.#become('connecting')
  }

  /** `detail` tells the operator why. */
  down(detail: string): void {
    this.#become('down', detail)
  }

  received(): void {
    this.#current = { ...this.#current, lastEventAtMs: this.#clock.nowMs() }
  }

  sent(): void {
    this.#current = { ...this.#current, lastSentAtMs: this.#clock.nowMs() }
  }

  #become(state: ChannelHealth['state'], detail?: string): void {
    const { detail: _, ...kept } = this.#current
    this.#current = { ...kept, state, ...(detail !== undefined && { detail }) }
  }
}
