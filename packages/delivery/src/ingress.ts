/** The way in: what a channel received is filtered, kept durably, and put into its lane. */

import type { DeliveryConfig } from '@sluice/config'
import { AppError, type ApprovalKey, type Channel, type Clock, type Inbound, type Logger, type Store, type Verified } from '@sluice/sdk'
import { createAllowedSenders } from './allowed-senders.ts'
import { answerLane, isAnswerLane } from './answer-lane.ts'
import { type Account, accountKey, type DeliveryQueue } from './delivery-queue.ts'
import { sessionOf } from './session-of.ts'

export interface IngressOptions {
  readonly inbox: Pick<Store['inbox'], 'keep' | 'known'>
  /** The queues of turns and of replies to approvals. */
  readonly turns: Pick<DeliveryQueue, 'enter' | 'readyMs'>
  readonly replies: Pick<DeliveryQueue, 'enter'>
  readonly clock: Clock
  readonly log: Logger
  config(): Pick<DeliveryConfig, 'max_pending' | 'max_queue_secs'>
  /** The approval a message answers, if it answers one. */
  answered(channel: Channel, message: Inbound): ApprovalKey | undefined | Promise<ApprovalKey | undefined>
}

export interface Received {
  readonly raw: Uint8Array
  readonly verified: Verified
  readonly receivedAtMs: number
  readonly messages: readonly Inbound[]
  /** Kept with each of them; see `Arrival.trace`. */
  readonly trace?: string | undefined
}

/** `kept` and `duplicate` count messages; both 0: nothing in the request was for us. */
export interface Reception {
  readonly kept: number
  readonly duplicate: number
  readonly denied: number
}

export interface Ingress {
  /**
   * Resolves once everything that is for us is durable. Throws `unauthorized` for a request whose `once` was used before, and
   * `unavailable` when too many messages of the account wait, one has waited too long, or the store cannot keep it: then nothing
   * of it was kept.
   */
  receive(channel: Channel, received: Received): Promise<Reception>
  /** A message has left the lanes. */
  left(row: Account): void
  /** A message found in the store waits. */
  found(row: Account): void
}

const RETRY_AFTER_SECS = 30
/** A request that brings a value once is refused when it comes again within this time (decisions, "roomchat stale"). */
const ONCE_MS = 1_000_000
/** Answers to approvals have so much room of their own: what waits may wait for them. */
const ANSWERS_MAX = 1000
const NOTHING: Reception = { kept: 0, duplicate: 0, denied: 0 }

/** A message with the lane it belongs to. */
interface Laned {
  readonly message: Inbound
  readonly lane: string
}

export function createIngress({ inbox, turns, replies, clock, log, config, answered }: IngressOptions): Ingress {
  const senders = createAllowedSenders({ clock, log })
  /** How many wait, by channel and account; bounded by the accounts there are. */
  const pending = new Map<string, number>()
  const count = (key: string, change: number): void => {
    const next = (pending.get(key) ?? 0) + change
    if (next > 0) pending.set(key, next)
    else pending.delete(key)
  }

  const accountKeys = (channel: Channel, messages: readonly Laned[]) =>
    messages.map(({ message }) => accountKey({ channel: channel.name, account: message.account }))

  /** A request that brings more than there may be at all is taken when nothing else waits: it would never come to be. */
  const exceeds = (keys: readonly string[], max: number): boolean => {
    const wanted = new Map<string, number>()
    for (const key of keys) wanted.set(key, (wanted.get(key) ?? 0) + 1)
    return [...wanted].some(([key, more]) => {
      const waiting = pending.get(key) ?? 0
      return waiting > 0 && waiting + more > max
    })
  }
  const isOver = (channel: Channel, messages: readonly Laned[]): boolean => {
    const { max_pending } = config()
    const others = messages.filter(({ lane }) => !isAnswerLane(lane))
    return exceeds(accountKeys(channel, others), max_pending) || exceeds(accountKeys(channel, messages), max_pending + ANSWERS_MAX)
  }

  /** Whether turns of an account of these messages have waited for longer than an answer is worth waiting for. */
  const isLate = (channel: Channel, messages: readonly Laned[]): boolean => {
    const { max_queue_secs } = config()
    const others = messages.filter(({ lane }) => !isAnswerLane(lane))
    return others.some(({ message }) => turns.readyMs({ channel: channel.name, account: message.account }) > max_queue_secs * 1000)
  }

  /** The messages there is room for; known ones need none. Throws `unavailable` if there is no room for all others. */
  const withRoom = async (channel: Channel, messages: readonly Laned[]): Promise<readonly Laned[]> => {
    if (!isOver(channel, messages) && !isLate(channel, messages)) return messages
    const known = await inbox.known(
      channel.name,
      messages.map(({ message }) => message),
    )
    const fresh = messages.filter((_, index) => !known[index])
    if (isOver(channel, fresh)) {
      throw new AppError('unavailable', 'Too many messages of this account wait for their turn', { retryAfterSecs: RETRY_AFTER_SECS })
    }
    if (isLate(channel, fresh)) {
      throw new AppError('unavailable', 'Messages of this account have waited too long for their turn', {
        retryAfterSecs: RETRY_AFTER_SECS,
      })
    }
    return fresh
  }

  /** What answers an approval must not wait behind the turn that waits for it. */
  const laneOf = (channel: Channel, message: Inbound): string | Promise<string> => {
    if (message.pressed) return answerLane(channel.name, undefined, message)
    const laneFor = (key: ApprovalKey | undefined): string =>
      key ? answerLane(channel.name, key, message) : sessionOf(channel.name, message)
    const key = answered(channel, message)
    return key instanceof Promise ? key.then(laneFor) : laneFor(key)
  }

  return {
    async receive(channel, { raw, verified, receivedAtMs, messages, trace }) {
      const admitted = messages.filter(({ sender }) => senders.admit(channel, sender)).map(wellFormed)
      const denied = messages.length - admitted.length
      if (admitted.length === 0 && verified.once === undefined) return denied === 0 ? NOTHING : { ...NOTHING, denied }
      const laned: Laned[] = []
      for (const message of admitted) {
        const lane = laneOf(channel, message)
        laned.push({ message, lane: typeof lane === 'string' ? lane : await lane })
      }
      const fresh = await withRoom(channel, laned)
      const known = admitted.length - fresh.length
      if (fresh.length === 0 && known > 0 && verified.once === undefined) return { kept: 0, duplicate: known, denied }
      const keys = accountKeys(channel, fresh)
      for (const key of keys) count(key, 1)
      let numbers: Awaited<ReturnType<typeof inbox.keep>>
      try {
        numbers = await inbox.keep({
          channel: channel.name,
          verdict: verified.by,
          raw,
          receivedAtMs,
          ...(verified.once !== undefined && { once: { value: verified.once, untilMs: receivedAtMs + ONCE_MS } }),
          trace,
          messages: fresh.map(({ message, lane }) => ({ message, session: lane })),
        })
      } catch (error) {
        for (const key of keys) count(key, -1)
        throw error
      }
      if (numbers === 'replayed') {
        for (const key of keys) count(key, -1)
        throw new AppError('unauthorized', 'Invalid signature', { cause: 'the request was used before' })
      }
      let kept = 0
      for (const [index, number] of numbers.entries()) {
        if (number === null) {
          count(keys[index] ?? '', -1)
          continue
        }
        kept += 1
        const { message, lane = '' } = fresh[index] ?? {}
        const account = message?.account ?? ''
        const work = isAnswerLane(lane) ? replies : turns
        if (!work.enter({ number, channel: channel.name, account, lane, atMs: 0, cuts: 0 })) count(keys[index] ?? '', -1)
      }
      return { kept, duplicate: known + numbers.length - kept, denied }
    },
    left: (account) => count(accountKey(account), -1),
    found: (account) => count(accountKey(account), 1),
  }
}

/** Half a surrogate pair cannot be kept as it is, and is the same message on every retry. */
const wellFormed = (message: Inbound): Inbound =>
  message.text.isWellFormed() && message.id.isWellFormed() && message.sender.isWellFormed()
    ? message
    : { ...message, id: message.id.toWellFormed(), sender: message.sender.toWellFormed(), text: message.text.toWellFormed() }
