/** The health of channels: of a channel that listens, as its listener sees it; of others, as they report it. */
import type { Channel, ChannelHealth } from '@sluice/sdk'

const listening = new WeakMap<Channel, () => ChannelHealth>()
const sentAtMs = new WeakMap<Channel, number>()
/** The replies in a row of which the platform may or may not have got each. */
const ambiguousInRow = new WeakMap<Channel, number>()
const DEGRADED_AFTER = 3

/** Takes the health of a channel from its listener. */
export const observeHealth = (channel: Channel, health: () => ChannelHealth): void => void listening.set(channel, health)

/** Whether this process listens on the channel and opens its connection just now. */
export const isConnecting = (channel: Channel): boolean => listening.get(channel)?.().state === 'connecting'

/** Records that the platform accepted a message at this time. */
export function observeSent(channel: Channel, atMs: number): void {
  sentAtMs.set(channel, atMs)
  ambiguousInRow.delete(channel)
}

/** Records that a reply may or may not have been sent. */
export const observeAmbiguous = (channel: Channel): void => void ambiguousInRow.set(channel, (ambiguousInRow.get(channel) ?? 0) + 1)

/** Returns the known health. Makes no request. A channel that reports none and does not listen is `ok`. */
export function healthOf(channel: Channel): ChannelHealth {
  const lastSentAtMs = sentAtMs.get(channel)
  const unknown: ChannelHealth = { state: channel.listen ? 'connecting' : 'ok' }
  const health = channel.health?.() ?? listening.get(channel)?.() ?? unknown
  const inRow = ambiguousInRow.get(channel) ?? 0
  return {
    ...(lastSentAtMs !== undefined && { lastSentAtMs }),
    ...health,
    ...(inRow >= DEGRADED_AFTER && health.state !== 'down' && { state: 'degraded', detail: degraded(channel, inRow) }),
  }
}

const degraded = ({ name }: Channel, inRow: number): string =>
  `the last ${inRow} replies may or may not have been sent; 'sluice outbox replay --state ambiguous --channel ${name}' sends them all again`
