/** Runs a listener for each channel that listens, and stops it when the channel is removed. */
import { Listener } from '@sluice/kit'
import type { Channel, Clock, Deliver, Events, Logger } from '@sluice/sdk'
import { observeHealth } from './channel-health.ts'

export interface ListenersOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly events: Events
  /** The function that takes the messages of a channel. */
  deliver(channel: Channel): Deliver
}

interface Running {
  readonly stopped: AbortController
  readonly ended: Promise<void>
}

export class Listeners {
  readonly #options: ListenersOptions
  readonly #running = new Map<Channel, Running>()

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
    for (const channel of wanted) if (!this.#running.has(channel)) this.#running.set(channel, this.#start(channel))
  }

  /** Resolves once all connections have ended. */
  async stop(): Promise<void> {
    for (const { stopped } of this.#running.values()) stopped.abort()
    await Promise.all([...this.#running.values()].map(({ ended }) => ended))
  }

  #start(channel: Channel): Running {
    const { clock, log, events } = this.#options
    const deliver = this.#options.deliver(channel)
    const stopped = new AbortController()
    const listener = new Listener({
      clock,
      log,
      fields: { channel: channel.name },
      connect: async (context) => channel.listen?.(deliver, context),
      cursors: channel.cursors,
      onGap: ({ sinceMs, why }) =>
        events.emit({
          type: 'channel_gap',
          channel: channel.name,
          since: sinceMs === undefined ? null : new Date(sinceMs).toISOString(),
          why,
        }),
    })
    observeHealth(channel, () => listener.health)
    return { stopped, ended: listener.run(stopped.signal) }
  }
}
