/**
 * Sends the replies of one account. Each reply is sent once, as far as its outcome is known. A reply whose outcome cannot be
 * known is ambiguous and left to the operator.
 */
import { type Attempt, ageMs as ageOf, type JobOutcome, LaneQueue, signalScope } from '@sluice/kit'
import {
  AppError,
  type Channel,
  checkHeld,
  fileOwnerOfSession,
  isLeaseLost,
  MAIN_AGENT,
  type Outbound,
  type Outcome,
  type OwnedStore,
  type Sent,
  type StartedReply,
  type Waiting,
} from '@sluice/sdk'
import { channelNamed, type DeliveryOptions } from '../delivery-options.ts'
import { DeliveryQueue, type OwnedRow } from '../delivery-queue.ts'
import { watchAttempt } from '../observe.ts'
import { observeAmbiguous, observeGivenUp, observeSent, observeUnsent } from './channel-health.ts'
import { loadFiles, withNotes } from './reply-files.ts'
import { asOutbound } from './reply-parts.ts'
import { asAccepted, closedReason } from './reply-window.ts'
import { awayDelayMs, retryDelayMs } from './retry-delay.ts'
import { SendPace } from './send-pace.ts'

export interface OutboxWorkerOptions extends DeliveryOptions {
  readonly channel: string
  /** Aborts when the daemon no longer waits for running sends. */
  readonly cutOff: AbortSignal
}

const SEND_MS_MAX = 60_000
/** A reply whose channel is absent is checked again after this time. */
const ABSENT_DELAY_MS = 5000
/** The delay before the next attempt to record an outcome in the store. */
const RECORD_DELAY_MS = 1000
const HOUR_MS = 3_600_000

/** Errors after which nothing was sent and another attempt may succeed; see `Channel.send`. */
const NOT_SENT = new Set(['rate_limited', 'unavailable'])
/** Errors after which no attempt will succeed. */
const REFUSED = new Set(['invalid_request', 'forbidden', 'not_found'])
/** Errors after which the reply may have been sent. */
const UNKNOWN = new Set(['upstream', 'upstream_timeout', 'aborted', 'internal'])

interface Failure {
  readonly owned: OwnedStore
  readonly started: StartedReply
  readonly channel: Channel
  readonly error: unknown
  /** The start of the send, by the monotonic clock. */
  readonly startedMs: number
  ended(outcome: Outcome): void
}

export class OutboxWorker {
  readonly queue: DeliveryQueue
  readonly #options: OutboxWorkerOptions
  readonly #lanes: LaneQueue
  readonly #pace: SendPace

  constructor(options: OutboxWorkerOptions) {
    const { clock, log } = options
    this.#options = options
    this.#pace = new SendPace(clock)
    this.#lanes = new LaneQueue({ clock, permits: () => this.#pace.concurrency })
    const work = async (row: OwnedRow, attempt: Attempt): Promise<JobOutcome> => {
      const outcome = await this.#work(row, attempt)
      if (this.#pace.pauseMs > 0) void this.#wakeAfterPause()
      return outcome
    }
    // Also a reply of a lost shard, which another node sends, says nothing more of the channel.
    const onDone = ({ number, channel: name }: Waiting): void => {
      const channel = channelNamed(options.features, name)
      if (channel) observeGivenUp(channel, number, false)
    }
    this.queue = new DeliveryQueue({ lanes: this.#lanes, clock, log, work, onDone })
  }

  /** A timer may fire a fraction of a millisecond early. A wake within the pause would start no send, and no other wake would follow. */
  async #wakeAfterPause(): Promise<void> {
    const { clock, cutOff } = this.#options
    while (this.#pace.pauseMs > 0 && !cutOff.aborted) await clock.sleep(Math.ceil(this.#pace.pauseMs), cutOff)
    this.#lanes.wake()
  }

  async #work({ number, owned }: OwnedRow, attempt: Attempt): Promise<JobOutcome> {
    const { clock, cutOff, features, telemetry } = this.#options
    const channel = channelNamed(features, this.#options.channel)
    if (!channel || cutOff.aborted) return { retryAtMs: clock.nowMs() + ABSENT_DELAY_MS }
    const started = await owned.outbox.start(number)
    if (!started) return 'done'
    if (cutOff.aborted) return this.#stoppedBefore(owned, number)
    const { trace, ended } = watchAttempt(this.#options, { channel: channel.name, direction: 'outbound', number }, started.trace)
    const { edits } = started.extras ?? {}
    let reply = started
    let sent: Sent | undefined
    const startedMs = clock.monotonicMs()
    try {
      const { max_attempts } = features.config()
      if (started.attempts > max_attempts) throw new AppError('conflict', `It was interrupted ${max_attempts} times and never ended`)
      if (edits !== undefined) {
        sent = await telemetry.within(trace, () => this.#edit(owned, channel, started, { id: edits }))
        if (!sent) {
          // Recorded durably before anything is sent, because an edit may be repeated and a message may not.
          await owned.outbox.sendInstead(number)
          reply = asMessage(started)
        }
      }
      sent ??= await telemetry.within(trace, () => this.#send(owned, channel, reply))
    } catch (error) {
      return this.#failed({ owned, started: reply, channel, error, startedMs, ended })
    }
    ended('ok')
    this.#pace.sent(startedMs)
    // The next send begins during this commit, so that their records share one.
    attempt.permit.release()
    const { id } = sent
    await this.#record(number, () => owned.outbox.sent(number, { providerId: id, atMs: clock.nowMs() }))
    this.#options.events.emit({ type: 'delivery', direction: 'outbound', channel: channel.name, number, state: 'sent', error: null })
    return 'done'
  }

  /** Records that the reply was not sent, so that the next start sends it. */
  async #stoppedBefore(owned: OwnedStore, number: number): Promise<JobOutcome> {
    const atMs = this.#options.clock.nowMs()
    await owned.outbox.retry(number, { error: 'The daemon stopped before it was sent.', atMs, uncounted: true })
    return { retryAtMs: atMs }
  }

  /** Resolves to undefined if the message can no longer be edited, and this one must be sent instead. */
  async #edit(owned: OwnedStore, channel: Channel, started: StartedReply, sent: Sent): Promise<Sent | undefined> {
    const { to, extras } = started
    try {
      if (!channel.update) throw new AppError('invalid_request', `${channel.name} cannot edit messages`)
      const outbound = await this.#outbound(channel, started)
      using limit = signalScope([this.#options.cutOff], SEND_MS_MAX)
      checkHeld(owned.lease)
      await channel.update(to, sent, outbound, limit.signal)
      return sent
    } catch (error) {
      const isRefused = error instanceof AppError && REFUSED.has(error.code)
      if (isRefused && extras?.elseSend) return undefined
      throw error
    }
  }

  async #send(owned: OwnedStore, channel: Channel, started: StartedReply): Promise<Sent> {
    const outbound = await this.#outbound(channel, started)
    using limit = signalScope([this.#options.cutOff], SEND_MS_MAX)
    const { to } = asAccepted(started, channel, this.#options.clock.nowMs())
    checkHeld(owned.lease)
    const sent = await channel.send(to, outbound, limit.signal)
    observeSent(channel, this.#options.clock.nowMs())
    return sent
  }

  async #outbound(channel: Channel, { text, clientId, turnId, extras = {} }: StartedReply): Promise<Outbound> {
    const { features, approvals } = this.#options
    const { limits } = channel
    // The platform must not read characters of Sluice's own texts as marks. Texts that quote code with backticks, such as prompts, have marks on purpose.
    const plain = turnId === null && !text.includes('`') ? [] : undefined
    const { buttons, topic, styles = plain, files = [], agent = MAIN_AGENT, session } = extras
    const bytesMax = limits.attachments?.bytesMax ?? 0
    const all = features.workspace(agent)
    // The turn has judged the files; a reply of an earlier release does not say whose it is.
    const workspace = session === undefined ? all : all?.as({ caller: { owner: fileOwnerOfSession(session), session, isOperator: true } })
    const { attachments, notes } = await loadFiles(files, { workspace, bytesMax, texts: features.texts() })
    const message: Outbound = {
      text: withNotes(text, notes, limits, features.texts()),
      clientId,
      ...(attachments.length > 0 && { attachments }),
      ...(buttons && { buttons }),
      ...(topic !== undefined && { topic }),
    }
    // Only the prompt of an approval has buttons.
    const current = buttons ? await approvals.current(message, limits) : message
    return { ...current, ...asOutbound({ text: current.text, ...(styles && { styles }) }, channel) }
  }

  /**
   * Records the outcome of an attempt, and tries until the store has it. Until then the attempt counts as in progress, and
   * such a reply is not sent again before the next start.
   */
  async #record(number: number, record: () => Promise<void>): Promise<void> {
    const { clock, log, cutOff } = this.#options
    for (;;) {
      try {
        return await record()
      } catch (error) {
        log.error('outcome of a send not recorded', { outbox: number, error })
        if (cutOff.aborted || isLeaseLost(error)) throw error
        await clock.sleep(RECORD_DELAY_MS, cutOff)
      }
    }
  }

  async #failed({ owned, started, channel, error, startedMs, ended }: Failure): Promise<JobOutcome> {
    if (isLeaseLost(error)) {
      ended('aborted')
      throw error
    }
    const { clock, log, features, scrub, telemetry } = this.#options
    const { number, attempts } = started
    const code = error instanceof AppError ? error.code : 'internal'
    const reason = error instanceof AppError ? scrub(error.message) : 'an internal error of the channel'
    if (code === 'internal') log.error('send failed inside the channel', { channel: channel.name, outbox: number, error })
    const askedSecs = error instanceof AppError ? error.retryAfterSecs : undefined
    if (code === 'unavailable') this.#pace.away(startedMs, askedSecs)
    else if (code === 'rate_limited' || code === 'upstream_timeout') this.#pace.refused(startedMs, askedSecs)
    const ageMs = ageOf(clock, started.sinceMs)
    const { dedupesClientIds, dedupesForMs = 0 } = channel.limits
    // For the platform, the time in which this machine slept has passed too.
    const platformAgeMs = Math.max(ageMs, clock.nowMs() - started.sinceMs)
    // The next attempt is made before the age has doubled. An edit may be repeated any number of times.
    const isSafe = dedupesClientIds === true || 2 * platformAgeMs < dedupesForMs || started.extras?.edits !== undefined
    const isUnknown = UNKNOWN.has(code) && !isSafe
    const isRepeatable = NOT_SENT.has(code) || (UNKNOWN.has(code) && (isSafe || started.asks === true))
    const { max_attempts, max_age_hours } = features.config()
    const isOurs = code === 'internal'
    // A prompt that may have arrived is not repeated for ever.
    const isCounted = isOurs || isUnknown
    if (isRepeatable && (isCounted ? attempts < max_attempts : ageMs < max_age_hours * HOUR_MS)) {
      const delayMs = isOurs ? retryDelayMs(attempts) : Math.max(this.#pace.pauseMs, awayDelayMs(ageMs, askedSecs))
      const atMs = clock.nowMs() + delayMs
      const closed = closedReason(started, channel, atMs)
      if (closed !== undefined) return this.#giveUp(stateAfter(code), `${reason}; ${closed}`, { owned, started, channel, ended })
      if (NOT_SENT.has(code)) observeUnsent(channel, clock, { number, to: started.to.to, reason, isPause: code === 'rate_limited' })
      const repeats = error instanceof AppError && error.mayHaveArrived && !isSafe
      await this.#record(number, () => owned.outbox.retry(number, { error: reason, atMs, uncounted: !isCounted, repeats }))
      if (repeats) telemetry.observe({ kind: 'reply', channel: channel.name, what: 'repeated' })
      ended('error')
      return { retryAtMs: atMs }
    }
    if (REFUSED.has(code)) observeGivenUp(channel, number, true)
    return this.#giveUp(stateAfter(code), reason, { owned, started, channel, ended })
  }

  async #giveUp(
    state: 'ambiguous' | 'dead',
    error: string,
    { owned, started, channel, ended }: Pick<Failure, 'owned' | 'started' | 'channel' | 'ended'>,
  ): Promise<JobOutcome> {
    const { clock, log, events } = this.#options
    const { number, attempts } = started
    await this.#record(number, () => owned.outbox.giveUp(number, { state, error, atMs: clock.nowMs() }))
    if (state === 'ambiguous' && !this.#options.cutOff.aborted) observeAmbiguous(channel)
    ended(state === 'dead' ? 'error' : 'aborted')
    const fields = { channel: channel.name, outbox: number, attempts, error, see: `sluice outbox show ${number}` }
    if (state === 'dead') log.error('reply given up', fields)
    else log.warn('reply may have been sent, and is not sent again by itself', fields)
    events.emit({ type: 'delivery', direction: 'outbound', channel: channel.name, number, state, error })
    return 'done'
  }
}

const stateAfter = (code: string): 'ambiguous' | 'dead' => (UNKNOWN.has(code) ? 'ambiguous' : 'dead')

/** Returns the same reply as a new message instead of an edit. */
function asMessage({ extras = {}, ...started }: StartedReply): StartedReply {
  const { edits: _, elseSend: __, ...rest } = extras
  return { ...started, extras: rest }
}
