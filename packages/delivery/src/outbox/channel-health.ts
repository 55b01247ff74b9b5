/** The health of channels: of a channel that listens, as its listener sees it; of others, as they report it. */
import type { Channel, ChannelHealth, Clock } from '@sluice/sdk'

const listening = new WeakMap<Channel, () => ChannelHealth>()
const receivedAtMs = new WeakMap<Channel, number>()
const sentAtMs = new WeakMap<Channel, number>()
/** The replies in a row of which the platform may or may not have got each. */
const ambiguousInRow = new WeakMap<Channel, number>()
/** From this number on a channel is degraded. */
export const DEGRADED_AFTER = 3

/** A reply that was not sent and is tried again later. */
export interface UnsentReply {
  /** In the outbox. */
  readonly number: number
  /** The conversation. */
  readonly to: string
  readonly reason: string
  /** Whether the platform asked for a pause, which may be meant for this conversation alone. */
  readonly isPause: boolean
}

/** A time in which the platform took no reply and refused none for good. */
interface Unsent {
  readonly sinceMs: number
  /** The first failure and the last one, by the monotonic clock. */
  readonly beganMs: number
  readonly lastMs: number
  readonly last: UnsentReply
  /** The conversations of the replies that wait, by their numbers in the outbox. */
  readonly waiting: Map<number, string>
}

const unsent = new WeakMap<Channel, Unsent>()
/** A shorter outage is over before an operator could act. */
const DOWN_AFTER_MS = 5 * 60_000

/** Takes the health of a channel from its listener. */
export const observeHealth = (channel: Channel, health: () => ChannelHealth): void => void listening.set(channel, health)

/** Whether this process listens on the channel and opens its connection just now. */
export const isConnecting = (channel: Channel): boolean => listening.get(channel)?.().state === 'connecting'

/** Records that a message of the platform arrived at this time. */
export const observeReceived = (channel: Channel, atMs: number): void => void receivedAtMs.set(channel, atMs)

/** Records that the platform accepted a message at this time. */
export function observeSent(channel: Channel, atMs: number): void {
  sentAtMs.set(channel, atMs)
  ambiguousInRow.delete(channel)
  unsent.delete(channel)
}

/** Records that a reply was not sent just now. */
export function observeUnsent(channel: Channel, clock: Pick<Clock, 'monotonicMs' | 'nowMs'>, reply: UnsentReply): void {
  const [atMs, lastMs] = [clock.nowMs(), clock.monotonicMs()]
  const { sinceMs = atMs, beganMs = lastMs, waiting = new Map() } = unsent.get(channel) ?? {}
  waiting.set(reply.number, reply.to)
  // A time before the first failure means that the clock was set back.
  unsent.set(channel, { sinceMs: Math.min(sinceMs, atMs), beganMs, lastMs, last: reply, waiting })
}

/** Records that a reply is given up. `isRefused`: the platform refused it for good, so it can be reached. */
export function observeGivenUp(channel: Channel, number: number, isRefused: boolean): void {
  const outage = unsent.get(channel)
  outage?.waiting.delete(number)
  if (isRefused || outage?.waiting.size === 0) unsent.delete(channel)
}

/** Records that a reply may or may not have been sent. */
export const observeAmbiguous = (channel: Channel): void => void ambiguousInRow.set(channel, ambiguousOf(channel) + 1)

/** Returns the replies in a row of which the platform may or may not have got each, as far as this process knows. */
export const ambiguousOf = (channel: Channel): number => ambiguousInRow.get(channel) ?? 0

/** Replaces the number that `ambiguousOf` returns. */
export const recallAmbiguous = (channel: Channel, inRow: number): void => void ambiguousInRow.set(channel, inRow)

/** Returns the known health. Makes no request. A channel that reports none and does not listen is `ok`. */
export function healthOf(channel: Channel): ChannelHealth {
  const lastEventAtMs = receivedAtMs.get(channel)
  const lastSentAtMs = sentAtMs.get(channel)
  const unknown: ChannelHealth = { state: channel.listen ? 'connecting' : 'ok' }
  const health = channel.health?.() ?? listening.get(channel)?.() ?? unknown
  const inRow = ambiguousOf(channel)
  const outage = unsent.get(channel)
  const isDown = outage !== undefined && outage.lastMs - outage.beganMs >= DOWN_AFTER_MS && isOfAll(outage)
  return {
    ...(lastEventAtMs !== undefined && { lastEventAtMs }),
    ...(lastSentAtMs !== undefined && { lastSentAtMs }),
    ...health,
    ...(isDown && health.state !== 'down' && { state: 'down', detail: noneSent(outage) }),
    ...(inRow >= DEGRADED_AFTER && health.state !== 'down' && !isDown && { state: 'degraded', detail: degraded(channel, inRow) }),
  }
}

const isOfAll = ({ last, waiting }: Unsent): boolean => !last.isPause || new Set(waiting.values()).size > 1

const noneSent = ({ sinceMs, last: { reason } }: Unsent): string =>
  `no reply could be sent since ${new Date(sinceMs).toISOString()}: ${reason}`

const degraded = ({ name }: Channel, inRow: number): string =>
  `the last ${inRow} replies may or may not have been sent; 'sluice outbox replay --state ambiguous --channel ${name}' sends them all again`
