/** Runs a listener for each channel that listens, under the lease of its account, and stops it when the channel is removed. */
import { endsWithin, Listener } from '@sluice/kit'
import type { Ownership } from '@sluice/ownership'
import {
  type Channel,
  type Clock,
  channelLease,
  type Deliver,
  type Events,
  type Lease,
  type LeaseName,
  type Logger,
  type OwnedStore,
} from '@sluice/sdk'
import { observeHealth } from './outbox/channel-health.ts'

export interface ListenersOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly events: Events
  readonly ownership: Pick<Ownership, 'whileHolding'>
  /** The function that takes the messages of a channel. */
  deliver(channel: Channel): Deliver
}

interface Running {
  readonly name: LeaseName
  readonly stopped: AbortController
  readonly ended: Promise<void>
}

/** How long a rebuilt channel waits for its predecessor, which may still deliver messages and store its positions. */
const PREDECESSOR_MS_MAX = 5000

export class Listeners {
  readonly #options: ListenersOptions
  readonly #running = new Map<Channel, Running>()
  /** The listeners of removed channels that have not ended. */
  readonly #leaving = new Set<Running>()

  constructor(options: ListenersOptions) {
    this.#options = options
  }

  /** Listens on exactly these channels from now on. */
  set(channels: readonly Channel[]): void {
    const wanted = new Set(channels.filter((channel) => channel.listen))
    for (const [channel, running] of this.#running) {
      if (wanted.has(channel)) continue
      this.#running.delete(channel)
      this.#leaving.add(running)
      void running.ended.then(() => this.#leaving.delete(running))
      running.stopped.abort()
    }
    for (const channel of wanted) if (!this.#running.has(channel)) this.#running.set(channel, this.#start(channel))
  }

  /** Resolves once all connections have ended. */
  async stop(): Promise<void> {
    for (const { stopped } of this.#running.values()) stopped.abort()
    await Promise.all([...this.#running.values(), ...this.#leaving].map(({ ended }) => ended))
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
    const name = channelLease(channel.name, channel.notifications?.account || 'main')
    const ended = this.#predecessorsOf(name, stopped.signal).then(() => ownership.whileHolding(name, work, stopped.signal))
    return { name, stopped, ended }
  }

  /** Resolves once the removed channels with this lease have ended, after 5 s at the latest: taking the lease cuts off their work. */
  async #predecessorsOf(name: LeaseName, signal: AbortSignal): Promise<void> {
    const before = [...this.#leaving].filter((leaving) => leaving.name === name)
    if (before.length === 0) return
    const ended = Promise.all(before.map((leaving) => leaving.ended))
    await endsWithin(ended, PREDECESSOR_MS_MAX, this.#options.clock, signal)
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
