/** Works the inbox off: each message becomes one turn, and its reply is queued in the commit that ends the turn. */
import { newTurnId } from '@sluice/agent'
import type { Attempt, JobOutcome } from '@sluice/kit'
import {
  AppError,
  type Channel,
  errorText,
  formatTraceContext,
  replyLane,
  type SpentMessage,
  type StartedMessage,
  type Trace,
  type Waiting,
} from '@sluice/sdk'
import { takenBySops } from './by-sops.ts'
import { channelNamed, type DeliveryDeps } from './channels.ts'
import { DeliveryQueue, type DeliveryQueueOptions } from './delivery-queue.ts'
import { type Draft, openDraft } from './draft.ts'
import { textWithMedia } from './media.ts'
import { observeDelivery } from './observe-delivery.ts'
import { repliesOf } from './replies-of.ts'
import { awayDelayMs, retryDelayMs } from './retry-delay.ts'
import { channelOwner, senderOf } from './session-of.ts'
import { startTyping } from './typing.ts'

export interface InboxRunnerOptions extends DeliveryDeps {
  readonly onDone: NonNullable<DeliveryQueueOptions['onDone']>
  /** Told of replies that wait to be sent, once they are durable. */
  onReplies(replies: readonly Waiting[]): void
  /** Aborts when the daemon stops. */
  readonly stopping: AbortSignal
}

/** A row whose channel is not there is looked at again so much later. */
const ABSENT_WAIT_MS = 5000
const HOUR_MS = 3_600_000

export function createInboxRunner(options: InboxRunnerOptions): DeliveryQueue {
  const { clock, log, lanes, onDone } = options
  return new DeliveryQueue({ lanes, clock, log, onDone, work: ({ number, channel }, attempt) => work(options, number, channel, attempt) })
}

async function work(options: InboxRunnerOptions, number: number, channelName: string, attempt: Attempt): Promise<JobOutcome> {
  const { clock, stopping } = options
  const channel = channelNamed(options, channelName)
  if (!channel || stopping.aborted) return { retryAtMs: clock.nowMs() + ABSENT_WAIT_MS }
  if (await takenBySops(options, channel, number)) return 'done'
  const started = await options.store.inbox.start(number, newTurnId(clock.nowMs()), options.config().max_attempts)
  if (!started) return 'done'
  if ('spent' in started) return bury(options, started, `it was started ${started.attempts} times and never reached its end`)
  const { trace, ended } = observeDelivery(options, { channel: channel.name, direction: 'inbound', number }, started.trace)
  const drafting = { ...options, inbox: options.store.inbox, channel, started, signal: stopping }
  const draft = await options.within(trace, () => openDraft(drafting))
  const typing = startTyping({ channel, to: started.message.to, clock })
  try {
    const replies = await answer(options, { channel, started, draft, trace, attempt, onWait: typing.pause })
    ended('ok')
    await draft?.stop()
    options.onReplies(replies)
    return 'done'
  } catch (error) {
    await draft?.stop()
    if (!stopping.aborted) ended('error')
    return failed(options, { started, error, draft: draft?.id })
  } finally {
    typing.stop()
  }
}

interface Answering {
  readonly channel: Channel
  readonly started: StartedMessage
  readonly draft: Draft | undefined
  readonly trace: Trace
  readonly attempt: Attempt
  onWait(isWaiting: boolean): void
}

/** The turn. Resolves to its replies, which are in the outbox by then. */
async function answer(options: InboxRunnerOptions, { channel, started, draft, trace, attempt, onWait }: Answering): Promise<Waiting[]> {
  const { clock } = options
  const { number, account, message } = started
  const caller = senderOf(channel.name, message)
  const media = {
    channel,
    workspace: options.workspace(),
    transcribe: options.transcribe(),
    log: options.log,
    clock,
    signal: options.stopping,
  }
  const text = await options.within(trace, () => textWithMedia(message, media))
  const { replies } = await options.agent.run({
    source: channel.name,
    session: started.session,
    text,
    client: options.clients.ofCaller(caller),
    owner: channelOwner(channel.name),
    caller,
    trace,
    permit: attempt.permit,
    ...(attempt.superseded && { followed: attempt.superseded }),
    onWait,
    ...(draft && { listen: draft.hear }),
    delivery: {
      turnId: started.turnId,
      inbox: number,
      attempts: started.attempts,
      receivedAtMs: started.receivedAtMs,
      checkpoint: started.checkpoint,
      reply: (said, turn) =>
        repliesOf(said, {
          channel,
          started,
          nowMs: clock.nowMs(),
          draft: draft?.id,
          trace: options.traces() ? formatTraceContext(turn) : undefined,
        }),
    },
  })
  const lane = replyLane({ channel: channel.name, account, to: message.to })
  return replies.map((reply) => ({ number: reply, channel: channel.name, account, lane, atMs: 0, cuts: 0 }))
}

interface Failure {
  readonly started: StartedMessage
  readonly error: unknown
  /** The message that showed the reply while it was made. */
  readonly draft: string | undefined
}

async function failed(options: InboxRunnerOptions, { started, error, draft }: Failure): Promise<JobOutcome> {
  const { clock, stopping, store } = options
  const { number, attempts } = started
  if (stopping.aborted) {
    await store.inbox.release(number)
    return { retryAtMs: clock.nowMs() + ABSENT_WAIT_MS }
  }
  if (error instanceof AppError && error.code === 'rate_limited') {
    // The operator's budget is spent, which says nothing about this message.
    await store.inbox.release(number)
    return { retryAtMs: clock.nowMs() + retryDelayMs(1, error.retryAfterSecs) }
  }
  const { max_attempts, max_age_hours } = options.config()
  const nowMs = clock.nowMs()
  const ageMs = nowMs - started.sinceMs
  // The model was away, or the turn was not taken: no fault of this message.
  const isAway = error instanceof AppError && (error.isPassing || error.code === 'unavailable')
  const isSpent = isAway ? ageMs >= max_age_hours * HOUR_MS : attempts >= max_attempts
  const isOver = isSpent || (error instanceof AppError && error.code === 'aborted')
  const reason = options.scrub(errorText(error))
  if (isOver) {
    if (draft !== undefined) await endDraft(options, started, draft)
    return bury(options, started, reason)
  }
  const wished = error instanceof AppError ? error.retryAfterSecs : undefined
  const atMs = nowMs + (isAway ? awayDelayMs(ageMs, wished) : retryDelayMs(attempts, wished))
  await store.inbox.retry(number, { error: reason, atMs, uncounted: isAway })
  return { retryAtMs: atMs }
}

/** What was shown of an answer that never came must not stay as if it still might. */
async function endDraft({ store, clock, onReplies }: InboxRunnerOptions, started: StartedMessage, draft: string): Promise<void> {
  const { channel, account, message, turnId, trace } = started
  const about = { channel, account, to: message.to }
  const text = 'This message could not be answered.'
  const edit = {
    ...about,
    text,
    part: 1,
    parts: 1,
    clientId: `draft-${turnId}`,
    turnId,
    createdAtMs: clock.nowMs(),
    extras: { edits: draft },
    ...(trace !== undefined && { trace }),
  }
  const numbers = await store.outbox.add([edit])
  onReplies(numbers.map((number) => ({ number, channel, account, lane: replyLane(about), atMs: 0, cuts: 0 })))
}

async function bury(
  { store, clock, log, events }: InboxRunnerOptions,
  { number, channel, attempts }: StartedMessage | SpentMessage,
  error: string,
): Promise<JobOutcome> {
  await store.inbox.bury(number, { error, atMs: clock.nowMs() })
  log.error('a message was given up', { channel, inbox: number, attempts, error, see: `sluice inbox show ${number}` })
  events.emit({ type: 'delivery', direction: 'inbound', channel, number, state: 'dead', error })
  return 'done'
}
