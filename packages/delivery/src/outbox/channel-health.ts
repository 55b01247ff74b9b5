/** The health of channels: of a channel that listens, as its listener sees it; of others, as they report it. */
import type { Channel, ChannelHealth } from '@sluice/sdk'

const listening = new WeakMap<Channel, () => ChannelHealth>()
const sentAtMs = new WeakMap<Channel, number>()

/** Takes the health of a channel from its listener. */
export const observeHealth = (channel: Channel, health: () => ChannelHealth): void => void listening.set(channel, health)

/** Records that the platform accepted a message at this time. */
export const observeSent = (channel: Channel, atMs: number): void => void sentAtMs.set(channel, atMs)

/** Returns the known health. Makes no request. A channel that reports none and does not listen is `ok`. */
export function healthOf(channel: Channel): ChannelHealth {
  const lastSentAtMs = sentAtMs.get(channel)
  const unknown: ChannelHealth = { state: channel.listen ? 'connecting' : 'ok' }
  return { ...(lastSentAtMs !== undefined && { lastSentAtMs }), ...(channel.health?.() ?? listening.get(channel)?.() ?? unknown) }
}
