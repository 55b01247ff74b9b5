/** Decides whether a message may run now: the limits of its sender, and the breaker of loops between bots. */

import { type Admission, causeOf, describeLimit, type ExceededShare, type LimitedClient, quietMs, type Shares } from '@sluice/agent'
import { countedAs } from '@sluice/config'
import type { JobOutcome } from '@sluice/kit'
import {
  type Channel,
  type Clock,
  type Events,
  type Exceeded,
  type GatewayTexts,
  type HeldBack,
  type Inbound,
  type Logger,
  type LoopSeries,
  type LoopState,
  type OwnedStore,
  senderKey,
  sessionOfWriter,
  shardOfSession,
} from '@sluice/sdk'
import { type QueuedReply, waitingReplies } from '../delivery-queue.ts'
import type { People } from '../people/people.ts'
import type { CommandLimit } from './command-limit.ts'
import { noticeTo } from './notice.ts'
import { standingOfSender } from './standing-of-sender.ts'

/** The collaborators of admission. */
export interface AdmissionOptions {
  readonly admission: Admission
  readonly shares: Shares
  /** Returns how many quick messages in a row pause a conversation of the channel; 0: never. */
  loopTurns(channel: string): number
  /** Returns the senders of a channel who are operators (`[channels_config.<channel>] operators`). */
  operators(channel: string): readonly string[]
  /** Tells the operators. Must not throw. */
}

export interface AdmitOptions extends AdmissionOptions {
  readonly clock: Clock
  readonly events: Events
  readonly log: Logger
  readonly texts: GatewayTexts
  onReplies(replies: readonly QueuedReply[]): void
}

export interface AskingMessage {
  readonly owned: OwnedStore
  readonly channel: Channel
  readonly number: number
  readonly message: Inbound
  /** The principal of the message. */
  readonly client: LimitedClient
  /** The session of the message. */
  readonly session: string
  /** The number of messages that wait, so that many of them do not ask too often. */
  readonly waiting: number
}

/** A person reads an answer and types the next message. Many times in a row within this time is the work of a program. */
const QUICK_MS = 10_000
const PAUSE_MS = 3_600_000
/** A message that waits for another turn of its sender asks again after this time, or later if many messages wait. */
const ASK_AGAIN_MS = 1000
const ASK_AGAIN_EACH_MS = 5
/** A sender whose share is used up is listed as held back for this time. */
const SHARE_MS = 60_000

/** Returns the principal of a message; `operators` as in `standingOfSender`. */
export const clientOf = (
  channel: Channel,
  message: Pick<Inbound, 'account' | 'sender' | 'name' | 'unverified'>,
  operators: readonly string[],
): LimitedClient => ({
  client: senderKey(channel.name, message),
  ...(message.name !== undefined && { name: message.name }),
  standing: standingOfSender(channel, message, operators),
  channel: channel.name,
})

/** Resolves to the principal of a message, with the person of linked accounts. */
export async function principalOf(
  { limits, people }: { readonly limits: Pick<AdmissionOptions, 'operators'>; readonly people: Pick<People, 'refresh' | 'principal'> },
  channel: Channel,
  message: Inbound,
): Promise<LimitedClient> {
  await people.refresh()
  return people.principal(clientOf(channel, message, limits.operators(channel.name)))
}

/** Resolves to undefined when the message may run; otherwise it has ended as `limited`, or asks again later and holds up only its sender. */
export async function admitMessage(options: AdmitOptions, asking: AskingMessage): Promise<JobOutcome | undefined> {
  const { admission, clock } = options
  const { owned, number, client, session } = asking
  const state = await owned.admissions.loopState(number, seriesOf(asking))
  // A message that began a turn before goes on, and one that an operator replayed has no limit.
  if (!state || state.isAdmitted) return undefined
  if (await isPaused(options, asking, state)) return endInLoop(options, asking)
  const exceeded = await admission.take(client, { id: `inbox:${number}`, shard: shardOfSession(session) }, owned.admissions)
  if (!exceeded) return undefined
  if (exceeded.limit !== 'turns_in_flight') return endOverLimit(options, asking, exceeded)
  return { retryAtMs: clock.nowMs() + Math.max(ASK_AGAIN_MS, asking.waiting * ASK_AGAIN_EACH_MS), stepsAside: true }
}

/**
 * Resolves to undefined when a command may be answered; otherwise it has ended as `limited`. A command counts neither as a turn nor in a
 * series of quick messages, so that a person loses no turn for it. It gets no answer in a paused conversation.
 */
export async function admitCommand(options: AdmitOptions, asking: AskingMessage, commands: CommandLimit): Promise<JobOutcome | undefined> {
  const { owned, channel, number, client } = asking
  if (client.standing === 'operator') return undefined
  const state = await owned.admissions.loopState(number, seriesOf(asking))
  if (!state || state.isAdmitted) return undefined
  if (options.loopTurns(channel.name) > 0 && isInPause(state, options.clock.nowMs())) return endInLoop(options, asking)
  const exceeded = commands.take(client, number)
  return exceeded && endOverLimit(options, asking, exceeded)
}

/** Ends a message as `limited` because too many messages of its sender wait. */
export function endBeyondShare(options: AdmitOptions, asking: AskingMessage, exceeded: ExceededShare): Promise<JobOutcome> {
  return endOverLimit(options, asking, { ...exceeded, freeAtMs: options.clock.nowMs() + SHARE_MS })
}

const seriesOf = ({ session, message }: AskingMessage): LoopSeries => ({ session, series: sessionOfWriter(session, message.sender) })

/** Counts a quick message, and pauses the conversation, or in a shared room its writer, when there were too many in a row. */
async function isPaused(options: AdmitOptions, asking: AskingMessage, state: LoopState): Promise<boolean> {
  const { owned, channel, number, session } = asking
  const { clock, events, log, loopTurns } = options
  const max = loopTurns(channel.name)
  if (max === 0) return false
  const atMs = clock.nowMs()
  if (isInPause(state, atMs)) return true
  const of = seriesOf(asking)
  const quick = quickMessages(state)
  if (quick < max) {
    // A writer of a shared room who was quick before and is slow now is a person, so that the series of all end. A slow program ends none.
    if (quick !== state.quick) await owned.admissions.countQuick(of, number, quick)
    else if (quick === 0 && isAfterAnswer(state) && of.series !== of.session) await owned.admissions.forgetQuick(of, number)
    return false
  }
  const held = { client: of.series, cause: 'loop', sinceMs: atMs, untilMs: atMs + PAUSE_MS } as const
  await owned.admissions.forgetQuick(of, number)
  if (await owned.admissions.hold(held, PAUSE_MS)) {
    const until = new Date(held.untilMs).toISOString()
    log.warn('conversation paused: its messages came as quickly as those of a program', {
      channel: channel.name,
      session: of.series,
      until,
    })
    events.emit({ type: 'loop_stopped', channel: channel.name, session_id: session, sender: state.sender, held: of.series, until })
  }
  return true
}

/** A pause that ends later than any pause can was made before the clock was set back. */
const isInPause = ({ pausedUntilMs }: LoopState, atMs: number): boolean =>
  pausedUntilMs !== null && pausedUntilMs > atMs && pausedUntilMs <= atMs + PAUSE_MS

/** Only the first message after each answer continues or ends a series. */
const isAfterAnswer = ({ afterAnswerMs }: LoopState): boolean => afterAnswerMs !== null && afterAnswerMs >= 0

function quickMessages(state: LoopState): number {
  const { afterAnswerMs, quick } = state
  if (!isAfterAnswer(state)) return quick
  return (afterAnswerMs ?? 0) > QUICK_MS ? 0 : quick + 1
}

/** The sender gets no notice, because a bot would answer it. */
async function endInLoop({ clock }: AdmitOptions, { owned, number }: AskingMessage): Promise<JobOutcome> {
  await owned.inbox.limit(number, { error: 'loop: the conversation is paused', atMs: clock.nowMs() })
  return 'done'
}

async function endOverLimit(
  options: AdmitOptions,
  { owned, channel, number, message, client: limited }: AskingMessage,
  exceeded: Exceeded,
): Promise<JobOutcome> {
  const { admission, clock, onReplies, texts } = options
  const atMs = clock.nowMs()
  const client = countedAs(limited)
  const isOfRoom = exceeded.key === limited.room?.key
  const isPool = exceeded.key !== client && !isOfRoom
  if (isPool) await admission.report(exceeded)
  const error = `${exceeded.limit}: ${describeLimit(exceeded)}`
  // When a pool is used up, only senders who had an answer today get a notice: new senders are too many for that.
  if (isPool && !(await owned.admissions.wasServed(client, atMs))) {
    await owned.inbox.limit(number, { error, atMs })
    return 'done'
  }
  const cause = causeOf(exceeded)
  // One notice tells all people of a room.
  const held: HeldBack = { client: isOfRoom ? exceeded.key : client, cause, sinceMs: atMs, untilMs: exceeded.freeAtMs }
  const notice = [noticeTo(channel, message, describeLimit(exceeded, texts), atMs)]
  const { isNews, replies } = await owned.inbox.limit(number, { error, atMs, news: { held, quietMs: quietMs(cause, atMs), notice } })
  if (isNews && !isPool) admission.emitReached(exceeded)
  onReplies(waitingReplies(notice, replies))
  return 'done'
}
