/** Works the outbox off: each reply is sent once, as far as that can be known; an unknown outcome is left to the operator. */

import { type Attempt, type JobOutcome, LaneQueue, signalScope } from '@sluice/kit'
import { AppError, type Channel, type Outbound, type Outcome, type Sent, type StartedReply } from '@sluice/sdk'
import { channelNamed, type DeliveryDeps } from './channels.ts'
import { DeliveryQueue } from './delivery-queue.ts'
import { observeDelivery } from './observe-delivery.ts'
import { loadFiles, withNotes } from './reply-files.ts'
import { awayDelayMs, retryDelayMs } from './retry-delay.ts'
import { SendPace } from './send-pace.ts'

export interface OutboxRunnerOptions extends DeliveryDeps {
  readonly channel: string
  /** Aborts when the daemon's patience is over. */
  readonly cutOff: AbortSignal
}

const SEND_MS_MAX = 60_000
const ABSENT_WAIT_MS = 5000
const RECORD_WAIT_MS = 1000
const HOUR_MS = 3_600_000

/** Errors that say that nothing was sent, and that another attempt may help; see `Channel.send`. */
const NOT_SENT = new Set(['rate_limited', 'unavailable'])
/** Errors that say that it never will be. */
const REFUSED = new Set(['invalid_request', 'forbidden', 'not_found'])
/** Errors that leave open whether it was sent. */
const UNKNOWN = new Set(['upstream', 'upstream_timeout', 'aborted', 'internal'])

/** Sends the replies of one account of one channel. */
export function createOutboxRunner(options: OutboxRunnerOptions): DeliveryQueue {
  const { clock, log, cutOff } = options
  const pace = new SendPace(clock)
  const lanes = new LaneQueue({ clock, permits: () => pace.concurrency })
  /** A timer may fire a fraction of a millisecond early, and a wake within the pause would start nothing and be the last one. */
  const wakeAfterPause = async (): Promise<void> => {
    while (pace.pauseMs > 0 && !cutOff.aborted) await clock.sleep(Math.ceil(pace.pauseMs), cutOff)
    lanes.wake()
  }
  return new DeliveryQueue({
    lanes,
    clock,
    log,
    async work({ number }, attempt) {
      const outcome = await work({ ...options, pace }, number, attempt)
      if (pace.pauseMs > 0) void wakeAfterPause()
      return outcome
    },
  })
}

interface SendOptions extends OutboxRunnerOptions {
  readonly pace: SendPace
}

async function work(options: SendOptions, number: number, attempt: Attempt): Promise<JobOutcome> {
  const { store, clock, pace } = options
  const channel = channelNamed(options, options.channel)
  if (!channel || options.cutOff.aborted) return { retryAtMs: clock.nowMs() + ABSENT_WAIT_MS }
  const started = await store.outbox.start(number)
  if (!started) return 'done'
  if (options.cutOff.aborted) {
    // Nothing has been sent: the next start sends it.
    const atMs = clock.nowMs()
    await store.outbox.retry(number, { error: 'The daemon stopped before it was sent.', atMs, uncounted: true })
    return { retryAtMs: atMs }
  }
  const { trace, ended } = observeDelivery(options, { channel: channel.name, direction: 'outbound', number }, started.trace)
  const { edits } = started.extras ?? {}
  let reply = started
  let sent: Sent | undefined
  const startedMs = clock.monotonicMs()
  try {
    const { max_attempts } = options.config()
    if (started.attempts > max_attempts) throw new AppError('conflict', `It was interrupted ${max_attempts} times and never ended`)
    if (edits !== undefined) {
      sent = await options.within(trace, () => edit(options, channel, started, { id: edits }))
      if (!sent) {
        // Durably, before anything is sent: an edit may be repeated, a message may not.
        await store.outbox.sendInstead(number)
        reply = asMessage(started)
      }
    }
    sent ??= await options.within(trace, () => post(options, channel, reply))
  } catch (error) {
    return failed(options, { started: reply, channel, error, startedMs, ended })
  }
  ended('ok')
  pace.sent(startedMs)
  // The next send begins while this one is noted, so that their marks share a commit.
  attempt.permit.release()
  const { id } = sent
  await noted(options, number, () => store.outbox.sent(number, { providerId: id, atMs: clock.nowMs() }))
  options.events.emit({ type: 'delivery', direction: 'outbound', channel: channel.name, number, state: 'sent', error: null })
  return 'done'
}

/** Undefined if the message can no longer be edited, and this one is then to be sent instead. */
async function edit(options: OutboxRunnerOptions, channel: Channel, started: StartedReply, sent: Sent): Promise<Sent | undefined> {
  const { to, extras } = started
  try {
    if (!channel.update) throw new AppError('invalid_request', `${channel.name} cannot edit messages`)
    const outbound = await outboundOf(options, channel, started)
    using limit = signalScope([options.cutOff], SEND_MS_MAX)
    await channel.update(to, sent, outbound, limit.signal)
    return sent
  } catch (error) {
    const isRefused = error instanceof AppError && REFUSED.has(error.code)
    if (isRefused && extras?.elseSend) return undefined
    throw error
  }
}

async function post(options: OutboxRunnerOptions, channel: Channel, started: StartedReply): Promise<Sent> {
  const outbound = await outboundOf(options, channel, started)
  using limit = signalScope([options.cutOff], SEND_MS_MAX)
  return await channel.send(started.to, outbound, limit.signal)
}

function asMessage({ extras = {}, ...started }: StartedReply): StartedReply {
  const { edits: _, elseSend: __, ...rest } = extras
  return { ...started, extras: rest }
}

async function outboundOf(options: OutboxRunnerOptions, { limits }: Channel, started: StartedReply): Promise<Outbound> {
  const { text, clientId, extras = {} } = started
  const { buttons, topic, files = [] } = extras
  const bytesMax = limits.attachments?.bytesMax ?? 0
  const { attachments, notes } = await loadFiles(files, { workspace: options.workspace(), bytesMax })
  const message: Outbound = {
    text: withNotes(text, notes, limits),
    clientId,
    ...(attachments.length > 0 && { attachments }),
    ...(buttons && { buttons }),
    ...(topic !== undefined && { topic }),
  }
  return options.approvals.current(message, limits)
}

/**
 * Notes what became of an attempt, as often as it takes: until the store knows, the row is held. To the store it is still
 * under way, and such a row is not worked on again before the next start.
 */
async function noted({ clock, log, cutOff }: OutboxRunnerOptions, number: number, note: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await note()
    } catch (error) {
      log.error('a reply was tried, and the store cannot note what became of it', { outbox: number, error })
      if (cutOff.aborted) throw error
      await clock.sleep(RECORD_WAIT_MS, cutOff)
    }
  }
}

interface Failure {
  readonly started: StartedReply
  readonly channel: Channel
  readonly error: unknown
  /** By the monotonic clock. */
  readonly startedMs: number
  ended(outcome: Outcome): void
}

async function failed(options: SendOptions, { started, channel, error, startedMs, ended }: Failure): Promise<JobOutcome> {
  const { store, clock, log, events, pace } = options
  const { number, attempts } = started
  const code = error instanceof AppError ? error.code : 'internal'
  const reason = error instanceof AppError ? options.scrub(error.message) : 'the channel failed by a fault of ours'
  if (code === 'internal') log.error('a channel failed while sending', { channel: channel.name, outbox: number, error })
  const askedSecs = error instanceof AppError ? error.retryAfterSecs : undefined
  if (code === 'unavailable') pace.away(startedMs, askedSecs)
  else if (code === 'rate_limited' || code === 'upstream_timeout') pace.refused(startedMs, askedSecs)
  // An edit may be repeated any number of times.
  const isSafe = channel.limits.dedupesClientIds === true || started.extras?.edits !== undefined
  const isRepeatable = NOT_SENT.has(code) || (UNKNOWN.has(code) && isSafe)
  const { max_attempts, max_age_hours } = options.config()
  const ageMs = clock.nowMs() - started.sinceMs
  const isOurs = code === 'internal'
  if (isRepeatable && (isOurs ? attempts < max_attempts : ageMs < max_age_hours * HOUR_MS)) {
    const waitMs = isOurs ? retryDelayMs(attempts) : Math.max(pace.pauseMs, awayDelayMs(ageMs, askedSecs))
    const atMs = clock.nowMs() + waitMs
    await noted(options, number, () => store.outbox.retry(number, { error: reason, atMs, uncounted: !isOurs }))
    ended('error')
    return { retryAtMs: atMs }
  }
  const state = UNKNOWN.has(code) ? 'ambiguous' : 'dead'
  await noted(options, number, () => store.outbox.giveUp(number, { state, error: reason, atMs: clock.nowMs() }))
  ended(state === 'dead' ? 'error' : 'aborted')
  log[state === 'dead' ? 'error' : 'warn'](state === 'dead' ? 'a reply was given up' : 'a reply may have been sent: nobody can tell', {
    channel: channel.name,
    outbox: number,
    attempts,
    error: reason,
    see: `sluice outbox show ${number}`,
  })
  events.emit({ type: 'delivery', direction: 'outbound', channel: channel.name, number, state, error: reason })
  return 'done'
}
