/** The health of channels: of a channel that listens, as its listener sees it; of others, as they report it. */
import type { Channel, ChannelHealth } from '@sluice/sdk'

const listening = new WeakMap<Channel, () => ChannelHealth>()
const sentAtMs = new WeakMap<Channel, number>()
/** The replies in a row of which the platform may or may not have got each. */
const ambiguousInRow = new WeakMap<Channel, number>()
const DEGRADED_AFTER = 3

/** A time in which each reply was refused or not sent, and why the last one was. */
interface Unsent {
  readonly sinceMs: number
  readonly lastMs: number
  readonly reason: string
}

const unsent = new WeakMap<Channel, Unsent>()
/** A shorter outage is over before an operator could act. */
const DOWN_AFTER_MS = 5 * 60_000

/** Takes the health of a channel from its listener. */
export const observeHealth = (channel: Channel, health: () => ChannelHealth): void => void listening.set(channel, health)

/** Whether this process listens on the channel and opens its connection just now. */
export const isConnecting = (channel: Channel): boolean => listening.get(channel)?.().state === 'connecting'

/** Records that the platform accepted a message at this time. */
export function observeSent(channel: Channel, atMs: number): void {
  sentAtMs.set(channel, atMs)
  ambiguousInRow.delete(channel)
  unsent.delete(channel)
}

/** Records that a reply was not sent and is tried again later. */
export function observeUnsent(channel: Channel, atMs: number, reason: string): void {
  const { sinceMs = atMs } = unsent.get(channel) ?? {}
  // A time before the first failure means that the clock was set back.
  unsent.set(channel, { sinceMs: Math.min(sinceMs, atMs), lastMs: atMs, reason })
}

/** Records that a reply may or may not have been sent. */
export const observeAmbiguous = (channel: Channel): void => void ambiguousInRow.set(channel, (ambiguousInRow.get(channel) ?? 0) + 1)

/** Returns the known health. Makes no request. A channel that reports none and does not listen is `ok`. */
export function healthOf(channel: Channel): ChannelHealth {
  const lastSentAtMs = sentAtMs.get(channel)
  const unknown: ChannelHealth = { state: channel.listen ? 'connecting' : 'ok' }
  const health = channel.health?.() ?? listening.get(channel)?.() ?? unknown
  const inRow = ambiguousInRow.get(channel) ?? 0
  const outage = unsent.get(channel)
  const isDown = outage !== undefined && outage.lastMs - outage.sinceMs >= DOWN_AFTER_MS
  return {
    ...(lastSentAtMs !== undefined && { lastSentAtMs }),
    ...health,
    ...(isDown && health.state !== 'down' && { state: 'down', detail: noneSent(outage) }),
    ...(inRow >= DEGRADED_AFTER && health.state !== 'down' && !isDown && { state: 'degraded', detail: degraded(channel, inRow) }),
  }
}

const noneSent = ({ sinceMs, reason }: Unsent): string => `no reply could be sent since ${new Date(sinceMs).toISOString()}: ${reason}`

const degraded = ({ name }: Channel, inRow: number): string =>
  `the last ${inRow} replies may or may not have been sent; 'sluice outbox replay --state ambiguous --channel ${name}' sends them all again`
