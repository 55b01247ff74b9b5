/** Reports channels that go down or recover, in the log and as events. */
import type { Channel, Events, Logger } from '@sluice/sdk'
import { healthOf } from './channel-health.ts'

/** Whether a reported health says that the channel does not work. */
const isFault = (reported: string): boolean => reported.startsWith('down') || reported.startsWith('degraded')

export class HealthWatch {
  readonly #log: Logger
  readonly #events: Events
  /** The last health that was reported, by channel. */
  readonly #reported = new Map<string, string>()

  constructor({ log, events }: { readonly log: Logger; readonly events: Events }) {
    this.#log = log
    this.#events = events
  }

  /** Compares the health of all channels with the last check. Call it regularly; it makes no request. */
  look(channels: readonly Channel[]): void {
    for (const channel of channels) this.#lookAt(channel)
    const present = new Set(channels.map(({ name }) => name))
    for (const [name, reported] of this.#reported) {
      if (present.has(name)) continue
      this.#reported.delete(name)
      if (isFault(reported)) this.#events.emit({ type: 'channel_health', channel: name, state: 'ok', detail: null })
    }
  }

  #lookAt(channel: Channel): void {
    const { state, detail } = healthOf(channel)
    const now = `${state} ${detail ?? ''}`
    const before = this.#reported.get(channel.name) ?? 'ok '
    if (now === before || state === 'connecting') return
    this.#reported.set(channel.name, now)
    if (state === 'down' || state === 'degraded') this.#log.warn(`channel ${state}`, { channel: channel.name, detail })
    else if (isFault(before)) this.#log.info('channel back', { channel: channel.name })
    else return
    this.#events.emit({ type: 'channel_health', channel: channel.name, state, detail: detail ?? null })
  }
}
