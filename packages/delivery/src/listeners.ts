/** Keeps a connection for each channel that listens: starts it, restarts it with backoff, and stops it when the channel is removed. */
import { backoffMs } from '@sluice/kit'
import type { Channel, Clock, Deliver, Logger } from '@sluice/sdk'

export interface ListenersOptions {
  readonly clock: Clock
  readonly log: Logger
  /** The function that takes the messages of a channel. */
  deliver(channel: Channel): Deliver
}

const RECONNECT = { firstMs: 1000, longestMs: 30_000 }
/** After a connection that lasted this long, the backoff begins again with its first delay. */
const STABLE_MS = 60_000

interface Listener {
  readonly stopped: AbortController
  readonly ended: Promise<void>
}

export class Listeners {
  readonly #options: ListenersOptions
  readonly #running = new Map<Channel, Listener>()

  constructor(options: ListenersOptions) {
    this.#options = options
  }

  /** Listens on exactly these channels from now on. */
  set(channels: readonly Channel[]): void {
    const wanted = new Set(channels.filter((channel) => channel.listen))
    for (const [channel, { stopped }] of this.#running) {
      if (wanted.has(channel)) continue
      stopped.abort()
      this.#running.delete(channel)
    }
    for (const channel of wanted) {
      if (this.#running.has(channel)) continue
      const stopped = new AbortController()
      this.#running.set(channel, { stopped, ended: this.#listen(channel, stopped.signal) })
    }
  }

  /** Resolves once all connections have ended. */
  async stop(): Promise<void> {
    for (const { stopped } of this.#running.values()) stopped.abort()
    await Promise.all([...this.#running.values()].map(({ ended }) => ended))
  }

  async #listen(channel: Channel, signal: AbortSignal): Promise<void> {
    const { clock, log, deliver } = this.#options
    for (let failures = 0; !signal.aborted; failures++) {
      const startedMs = clock.monotonicMs()
      try {
        await channel.listen?.(deliver(channel), signal)
        if (!signal.aborted) log.warn('channel stopped listening', { channel: channel.name })
      } catch (error) {
        if (!signal.aborted) log.warn('channel connection lost', { channel: channel.name, error })
      }
      if (signal.aborted) return
      if (clock.monotonicMs() - startedMs >= STABLE_MS) failures = 0
      await clock.sleep(backoffMs(failures, RECONNECT), signal)
    }
  }
}
