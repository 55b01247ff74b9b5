/** Notices when a channel goes down and when it is back: in the log, and as an event. Only what channels know is looked at. */
import type { Channel, ChannelHealth, Events, Logger } from '@sluice/sdk'

/** What `Channel.health` says, for a channel that says nothing too. */
export const healthOf = (channel: Channel): ChannelHealth => channel.health?.() ?? { state: 'ok' }

/** To be called now and then with the channels of the moment. */
export function createHealthWatch({
  log,
  events,
}: {
  readonly log: Logger
  readonly events: Events
}): (channels: readonly Channel[]) => void {
  /** What was told last, by channel. */
  const told = new Map<string, string>()
  return (channels) => {
    for (const channel of channels) {
      const { state, detail } = healthOf(channel)
      const now = `${state} ${detail ?? ''}`
      const before = told.get(channel.name) ?? 'ok '
      if (now === before || state === 'connecting') continue
      told.set(channel.name, now)
      if (state === 'down') log.warn('a channel is down', { channel: channel.name, detail })
      else if (before.startsWith('down')) log.info('a channel is back', { channel: channel.name })
      else continue
      events.emit({ type: 'channel_health', channel: channel.name, state, detail: detail ?? null })
    }
    const present = new Set(channels.map(({ name }) => name))
    for (const name of told.keys()) if (!present.has(name)) told.delete(name)
  }
}
