/** Runs a listener for each channel that listens, under the lease of its account, and stops it when the channel is removed. */
import { Listener, type Ownership } from '@sluice/kit'
import { type Channel, type Clock, channelLease, type Deliver, type Events, type Lease, type Logger, type OwnedStore } from '@sluice/sdk'
import { observeHealth } from './channel-health.ts'

export interface ListenersOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly events: Events
  readonly ownership: Pick<Ownership, 'whileHolding'>
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
    const { ownership } = this.#options
    const deliver = this.#options.deliver(channel)
    const stopped = new AbortController()
    const work = ({ lease }: OwnedStore, signal: AbortSignal): Promise<void> => {
      const listener = this.#listenerOf(channel, deliver, lease)
      observeHealth(channel, () => listener.health)
      return listener.run(signal)
    }
    const account = channel.notifications?.account || 'main'
    return { stopped, ended: ownership.whileHolding(channelLease(channel.name, account), work, stopped.signal) }
  }

  #listenerOf(channel: Channel, deliver: Deliver, lease: Lease): Listener {
    const { clock, log, events } = this.#options
    return new Listener({
      clock,
      log,
      lease,
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
  }
}
