/** Works the outbox off: each reply is sent once, as far as that can be known; what cannot be known is left to the operator. */
import { AppError, type Channel, type Outbound, type Outcome, type Sent, type StartedReply, signalScope } from '@sluice/sdk'
import { channelNamed, type DeliveryDeps } from './channels.ts'
import { observeDelivery } from './observe-delivery.ts'
import { loadFiles, withNotes } from './reply-files.ts'
import { retryDelayMs } from './retry-delay.ts'
import { WorkLanes, type WorkOutcome } from './work-lanes.ts'

export interface OutboxRunnerOptions extends DeliveryDeps {
  readonly channel: string
  /** Aborts when the daemon's patience is over. */
  readonly cutOff: AbortSignal
}

/** Of one channel; conversations wait for each other only beyond it. */
const SENDS_MAX = 8
const SEND_MS_MAX = 60_000
const ABSENT_WAIT_MS = 5000
const RECORD_WAIT_MS = 1000

/** Errors that say that nothing was sent, and that another attempt may help; see `Channel.send`. */
const NOT_SENT = new Set(['rate_limited', 'unavailable'])
/** Errors that say that it never will be. */
const REFUSED = new Set(['invalid_request', 'forbidden', 'not_found'])
/** Errors that leave open whether it was sent. */
const UNKNOWN = new Set(['upstream', 'upstream_timeout', 'aborted', 'internal'])

export function createOutboxRunner(options: OutboxRunnerOptions): WorkLanes {
  const { clock, log } = options
  return new WorkLanes({ clock, log, concurrency: () => SENDS_MAX, work: (number) => work(options, number) })
}

async function work(options: OutboxRunnerOptions, number: number): Promise<WorkOutcome> {
  const { store, clock } = options
  const channel = channelNamed(options, options.channel)
  if (!channel || options.cutOff.aborted) return { retryAtMs: clock.nowMs() + ABSENT_WAIT_MS }
  const started = await store.outbox.start(number)
  if (!started) return 'done'
  if (options.cutOff.aborted) {
    // Nothing has been sent: the next start sends it.
    const atMs = clock.nowMs()
    await store.outbox.retry(number, { error: 'The daemon stopped before it was sent.', atMs })
    return { retryAtMs: atMs }
  }
  const { trace, ended } = observeDelivery(options, { channel: channel.name, direction: 'outbound', number }, started.trace)
  const { edits } = started.extras ?? {}
  let reply = started
  let sent: Sent | undefined
  try {
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
    return failed(options, { started: reply, channel, error, ended })
  }
  ended('ok')
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
  ended(outcome: Outcome): void
}

async function failed(options: OutboxRunnerOptions, { started, channel, error, ended }: Failure): Promise<WorkOutcome> {
  const { store, clock, log, events } = options
  const { number, attempts } = started
  const code = error instanceof AppError ? error.code : 'internal'
  const reason = error instanceof AppError ? options.scrub(error.message) : 'the channel failed by a fault of ours'
  if (code === 'internal') log.error('a channel failed while sending', { channel: channel.name, outbox: number, error })
  // An edit may be repeated as often as one likes.
  const isSafe = channel.limits.dedupesClientIds === true || started.extras?.edits !== undefined
  const isRepeatable = NOT_SENT.has(code) || (UNKNOWN.has(code) && isSafe)
  if (isRepeatable && attempts < options.config().max_attempts) {
    const wished = error instanceof AppError ? error.retryAfterSecs : undefined
    const atMs = clock.nowMs() + retryDelayMs(attempts, wished)
    await noted(options, number, () => store.outbox.retry(number, { error: reason, atMs }))
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
