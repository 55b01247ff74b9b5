/** Keeps the connections of channels that hold one: started, restarted with a growing pause, replaced when the channel is. */
import type { Channel, Clock, Deliver, Logger } from '@sluice/sdk'

export interface ListenersOptions {
  readonly clock: Clock
  readonly log: Logger
  deliver(channel: Channel): Deliver
}

export interface Listeners {
  /** Listens on exactly these channels from now on. */
  set(channels: readonly Channel[]): void
  /** Resolves once all have ended. */
  stop(): Promise<void>
}

const FIRST_MS = 1000
const LONGEST_MS = 30_000
/** A connection that held so long was a good one: the pause starts anew. */
const STABLE_MS = 60_000

export function createListeners({ clock, log, deliver }: ListenersOptions): Listeners {
  const running = new Map<Channel, { readonly stop: AbortController; readonly ended: Promise<void> }>()

  const listen = async (channel: Channel, signal: AbortSignal): Promise<void> => {
    for (let attempt = 0; !signal.aborted; attempt++) {
      const startedMs = clock.monotonicMs()
      try {
        await channel.listen?.(deliver(channel), signal)
        if (!signal.aborted) log.warn('a channel stopped listening', { channel: channel.name })
      } catch (error) {
        if (!signal.aborted) log.warn('a channel lost its connection', { channel: channel.name, error })
      }
      if (signal.aborted) return
      if (clock.monotonicMs() - startedMs >= STABLE_MS) attempt = 0
      await clock.sleep(Math.min(LONGEST_MS, FIRST_MS * 2 ** attempt) * (0.5 + Math.random() / 2), signal)
    }
  }

  return {
    set(channels) {
      const wanted = new Set(channels.filter((channel) => channel.listen))
      for (const [channel, { stop }] of running) {
        if (wanted.has(channel)) continue
        stop.abort()
        running.delete(channel)
      }
      for (const channel of wanted) {
        if (running.has(channel)) continue
        const stop = new AbortController()
        running.set(channel, { stop, ended: listen(channel, stop.signal) })
      }
    },
    async stop() {
      for (const { stop } of running.values()) stop.abort()
      await Promise.all([...running.values()].map(({ ended }) => ended))
    },
  }
}
