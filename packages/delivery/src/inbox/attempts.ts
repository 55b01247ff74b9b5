/** Begins the attempts of messages durably, and records how one ends that fails: with another attempt, or as a dead letter. */

import { randomUUID } from 'node:crypto'
import { newTurnId } from '@sluice/agent'
import { ageMs as ageOf, BoundedMap, type JobOutcome } from '@sluice/kit'
import {
  AppError,
  errorText,
  gatewayText,
  type Inbound,
  isLeaseLost,
  type MessageNews,
  type NewReply,
  type OwnedStore,
  type SpentMessage,
  type StartedMessage,
} from '@sluice/sdk'
import { channelNamed } from '../delivery-options.ts'
import { waitingReplies } from '../delivery-queue.ts'
import { NO_TEXT } from '../outbox/replies-of.ts'
import { awayDelayMs, retryDelayMs } from '../outbox/retry-delay.ts'
import { LostEnds } from './lost-ends.ts'
import { HOUR_MS, hourlyNews } from './notice.ts'
import type { WithoutRoom } from './procedures.ts'
import { withMessage } from './read-message.ts'
import type { InboxWorkerOptions } from './worker-options.ts'

const STOPPED_MAX = 1000
/** A message whose channel is absent, or that a stop interrupts, is checked again after this time. */
export const ABSENT_DELAY_MS = 5000
/** A message that no procedure has room for is offered again after this time. */
const FULL_DELAY_MS = 30_000
/** A message that waits for a limit in dollars is tried again after this time, because the limit may be raised meanwhile. */
const BUDGET_LOOK_SECS = 600

/** A message that begins an attempt. */
interface Starting {
  readonly number: number
  readonly message: Inbound
  /** Its session, or the lane of a message without one. */
  readonly lane: string
}

/** A message whose sender gets a notice. */
interface Told extends Omit<Starting, 'number'> {
  readonly channel: string
}

interface NumberedTold extends Told {
  readonly number: number
}

/** A message whose reply was shown while it was written. */
type Drafted = Pick<StartedMessage, 'channel' | 'account' | 'message' | 'turnId' | 'trace'>

interface EndOfDraft {
  /** The platform's id of the draft. */
  readonly draft: string
  readonly isStopped: boolean
}

interface EndOfWait {
  readonly reason?: string
  readonly isStopped: boolean
}

export class Attempts {
  readonly #options: InboxWorkerOptions
  /** The turns that were stopped and that have not ended, some with the reason for the inbox. One that ends in another process is dropped at last. */
  readonly stopped = new BoundedMap<string, string | undefined>(STOPPED_MAX)
  /** The reasons of messages that their senders stopped while an attempt was under way that had begun no turn. */
  readonly withdrawn = new BoundedMap<number, string>(STOPPED_MAX)
  readonly lostEnds: LostEnds

  constructor(options: InboxWorkerOptions) {
    this.#options = options
    this.lostEnds = new LostEnds(options.clock)
  }

  /** Begins an attempt durably; `turnId` names the turn of a first attempt. Resolves to undefined if the message has ended, or crashes have interrupted all its attempts. */
  async start(owned: OwnedStore, { number, message, lane }: Starting, turnId?: string): Promise<StartedMessage | undefined> {
    const { clock, features } = this.#options
    const started = await owned.inbox.start(number, turnId ?? newTurnId(clock.nowMs()), features.config().max_attempts, message)
    if (started) this.lostEnds.begun(number, turnId !== undefined)
    if (!started || !('spent' in started)) return started
    const { draft, turnId: ofTurn, attempts } = started
    // The edit of a draft tells the sender.
    const isTold = draft !== null && ofTurn !== null
    if (isTold) await this.#endDraft(owned, { ...started, message, turnId: ofTurn }, { draft, isStopped: false })
    const news = isTold ? undefined : this.newsFor({ ...started, lane, message }, 'unanswered')
    await this.giveUp(owned, started, { error: `it was started ${attempts} times and never reached its end`, news })
    return undefined
  }

  /** Ends a message that its sender has stopped. Resolves to undefined for any other message. */
  async endWithdrawn(owned: OwnedStore, number: number): Promise<JobOutcome | undefined> {
    const reason = this.withdrawn.get(number)
    if (reason === undefined) return undefined
    await this.endWaiting(owned, number, { reason, isStopped: true })
    return 'done'
  }

  /**
   * Ends a message that has no running turn. The draft that an earlier attempt has left says that it was stopped, or that it is not answered.
   * `reason` is for the inbox.
   */
  async endWaiting(owned: OwnedStore, number: number, { reason, isStopped }: EndOfWait): Promise<void> {
    const { clock, features, onReplies } = this.#options
    const found = await owned.inbox.get(number)
    const entry = found && (await withMessage(features.channels(), found))
    const { draft, turnId, message } = entry ?? {}
    const edits = entry && draft && turnId && message ? [this.#endOfDraft({ ...entry, turnId, message }, { draft, isStopped })] : []
    onReplies(waitingReplies(edits, await owned.inbox.done(number, clock.nowMs(), edits, reason)))
  }

  /** Records the end of an attempt that failed: the message runs again, or ends. */
  async failed(owned: OwnedStore, started: StartedMessage, error: unknown, draft: string | undefined): Promise<JobOutcome> {
    const { clock, features, onReplies, scrub, stopping } = this.#options
    const { number, attempts } = started
    const failure = error instanceof AppError ? error : undefined
    if (isLeaseLost(error)) throw error
    // A turn that its sender stopped ends, also while the daemon stops.
    if (stopping.aborted && !this.stopped.has(started.turnId)) {
      await owned.inbox.release(number)
      return { retryAtMs: clock.nowMs() + ABSENT_DELAY_MS }
    }
    const { max_attempts, max_age_hours, notice_after_secs } = features.config()
    const nowMs = clock.nowMs()
    const ageMs = ageOf(clock, started.sinceMs)
    // A limit in dollars is reached. The message waits until it has room again, however long that takes.
    const isOverBudget = failure?.code === 'rate_limited'
    // The model was away or the turn was refused, so the attempt does not count either.
    const isAway = failure !== undefined && (failure.isPassing || failure.code === 'unavailable')
    const isSpent = !isOverBudget && (isAway ? ageMs >= max_age_hours * HOUR_MS : attempts >= max_attempts)
    const refusal = failure?.refusedFor
    const reason = scrub(errorText(error))
    const lane = started.session
    const stoppedFor = this.stopped.get(started.turnId)
    const isStopped = this.stopped.delete(started.turnId)
    if (isSpent || isStopped || refusal !== undefined || failure?.code === 'aborted') {
      if (draft !== undefined) await this.#endDraft(owned, started, { draft, isStopped })
      // The edit of a draft tells the sender.
      const news = draft === undefined ? this.newsFor({ ...started, lane }, 'unanswered', refusal) : undefined
      if (!isStopped) return this.giveUp(owned, started, { error: refusal === undefined ? reason : `refused: ${reason}`, news })
      await owned.inbox.done(number, nowMs, [], stoppedFor)
      return 'done'
    }
    const asked = isOverBudget ? Math.min(BUDGET_LOOK_SECS, failure.retryAfterSecs ?? 0) : failure?.retryAfterSecs
    const delayMs = isAway ? awayDelayMs(ageMs, asked) : retryDelayMs(isOverBudget ? 1 : attempts, asked)
    const retryAtMs = nowMs + Math.max(delayMs, this.lostEnds.delayMs(number, error))
    // Also told at once where the next attempt alone is that far away.
    const isLong = notice_after_secs > 0 && Math.max(ageMs, retryAtMs - nowMs) >= notice_after_secs * 1000
    const told = isLong ? this.newsFor({ ...started, lane }, 'waiting') : undefined
    // Once for this message, however long it waits.
    const news = told && { ...told, quietMs: Math.max(told.quietMs, nowMs - started.sinceMs) }
    const uncounted = isAway || isOverBudget
    const replies = await owned.inbox.retry(number, { error: reason, atMs: retryAtMs, uncounted, ...(news && { news }) })
    onReplies(waitingReplies(news?.notice ?? [], replies))
    // The model that is away, and a budget that is used up, hold up all people of a room. Another failure may be due to this message alone.
    return uncounted ? { retryAtMs } : { retryAtMs, stepsAside: true }
  }

  /** Returns the notice for the sender of a message; undefined where nothing may be written. A conversation gets each notice once an hour and reason. */
  newsFor({ channel: name, lane, message }: Told, key: 'unanswered' | 'waiting', reason?: string): MessageNews | undefined {
    const { clock, features } = this.#options
    const channel = channelNamed(features, name)
    const text = gatewayText(key, features.texts())
    // A program may have written an unverified message, and would answer the notice.
    if (!channel || text.trim() === '' || message.unverified === true) return undefined
    const cause = key === 'unanswered' && reason !== undefined ? (`unanswered:${reason}` as const) : key
    return hourlyNews(channel, message, { lane, cause, text }, clock.nowMs())
  }

  /** Ends a message that every procedure has skipped as limited, and tells its sender. */
  async skipped(owned: OwnedStore, told: NumberedTold, reason: string): Promise<JobOutcome> {
    const { clock, onReplies } = this.#options
    const news = this.newsFor(told, 'unanswered')
    const { replies } = await owned.inbox.limit(told.number, { error: reason, atMs: clock.nowMs(), ...(news && { news }) })
    onReplies(waitingReplies(news?.notice ?? [], replies))
    return 'done'
  }

  /**
   * Keeps a message that no procedure has room for until it is too old. Its sender is told once that it waits long, and when it is given up.
   */
  async withoutRoom(owned: OwnedStore, told: NumberedTold, { ageMs, reason }: WithoutRoom): Promise<JobOutcome> {
    const { clock, features, log, onReplies } = this.#options
    const { number, channel } = told
    const { max_age_hours, notice_after_secs } = features.config()
    if (ageMs >= max_age_hours * HOUR_MS) {
      return this.giveUp(owned, { number, channel, attempts: 0 }, { error: reason, news: this.newsFor(told, 'unanswered') })
    }
    log.warn('message waits for its procedures', { channel, inbox: number, reason })
    const isLong = notice_after_secs > 0 && ageMs >= notice_after_secs * 1000
    const news = isLong ? this.newsFor(told, 'waiting') : undefined
    // The wait is told once for a message, however long it is.
    const numbers = news && (await owned.outbox.addNews({ ...news, quietMs: Math.max(news.quietMs, ageMs) }))
    if (numbers) onReplies(waitingReplies(news.notice, numbers))
    return { retryAtMs: clock.nowMs() + FULL_DELAY_MS }
  }

  /** Makes the message a dead letter, and tells its sender. */
  async giveUp(
    owned: OwnedStore,
    { number, channel, attempts }: Pick<SpentMessage, 'number' | 'channel' | 'attempts'>,
    { error, news }: { readonly error: string; readonly news?: MessageNews | undefined },
  ): Promise<JobOutcome> {
    const { clock, events, log, onReplies } = this.#options
    const replies = await owned.inbox.markDead(number, { error, atMs: clock.nowMs(), ...(news && { news }) })
    onReplies(waitingReplies(news?.notice ?? [], replies))
    log.error('message given up', { channel, inbox: number, attempts, error, see: `sluice inbox show ${number}` })
    events.emit({ type: 'delivery', direction: 'inbound', channel, number, state: 'dead', error })
    return 'done'
  }

  async #endDraft(owned: OwnedStore, drafted: Drafted, end: EndOfDraft): Promise<void> {
    const edit = this.#endOfDraft(drafted, end)
    this.#options.onReplies(waitingReplies([edit], await owned.outbox.add([edit])))
  }

  /** Returns the edit of a draft whose reply will never be sent, also where the notice is switched off; without the draft, the text is a message. */
  #endOfDraft({ channel, account, message, turnId, trace }: Drafted, { draft, isStopped }: EndOfDraft): NewReply {
    const { clock, features } = this.#options
    const text = gatewayText(isStopped ? 'stopped' : 'unanswered', features.texts()).trim()
    return {
      channel,
      account,
      to: message.to,
      text: text || NO_TEXT,
      part: 1,
      parts: 1,
      clientId: randomUUID(),
      turnId,
      createdAtMs: clock.nowMs(),
      extras: { edits: draft, styles: [], ...(text !== '' && message.unverified !== true && { elseSend: true as const }) },
      ...(trace !== undefined && { trace }),
    }
  }
}
