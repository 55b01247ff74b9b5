/** Works the inbox off: each message becomes one turn, and its reply is queued in the commit that ends the turn. */
import { newTurnId } from '@sluice/agent'
import { AppError, errorText, replyLane, type SpentMessage, type StartedMessage, type Waiting } from '@sluice/sdk'
import { channelNamed, type DeliveryDeps } from './channels.ts'
import { textWithMedia } from './media.ts'
import { observeDelivery } from './observe-delivery.ts'
import { repliesOf } from './replies-of.ts'
import { retryDelayMs } from './retry-delay.ts'
import { channelOwner } from './session-of.ts'
import { WorkLanes, type WorkLanesOptions, type WorkOutcome } from './work-lanes.ts'

export interface InboxRunnerOptions extends DeliveryDeps {
  readonly onDone: NonNullable<WorkLanesOptions['onDone']>
  /** Told of replies that wait to be sent, once they are durable. */
  onReplies(replies: readonly Waiting[]): void
  /** Aborts when the daemon stops. */
  readonly stopping: AbortSignal
}

/** A row whose channel is not there is looked at again so much later. */
const ABSENT_WAIT_MS = 5000

export function createInboxRunner(options: InboxRunnerOptions): WorkLanes {
  const { clock, log, turnsMax, onDone } = options
  return new WorkLanes({ clock, log, onDone, concurrency: turnsMax, work: (number, row) => work(options, number, row.channel) })
}

async function work(options: InboxRunnerOptions, number: number, channelName: string): Promise<WorkOutcome> {
  const { clock, stopping } = options
  const { inbox } = options.store
  const channel = channelNamed(options, channelName)
  if (!channel || stopping.aborted) return { retryAtMs: clock.nowMs() + ABSENT_WAIT_MS }
  const { max_attempts } = options.config()
  const started = await inbox.start(number, newTurnId(clock.nowMs()), max_attempts)
  if (!started) return 'done'
  if ('spent' in started) return bury(options, started, `it was started ${started.attempts} times and never reached its end`)
  const { trace, ended } = observeDelivery(options, { channel: channel.name, direction: 'inbound' })
  try {
    const text = await textWithMedia(started.message, {
      channel,
      workspace: options.workspace(),
      transcribe: options.transcribe(),
      log: options.log,
      clock,
      signal: stopping,
    })
    const { replies } = await options.agent.run({
      source: channel.name,
      session: started.session,
      text,
      client: options.clients.ofSender(channel.name, started.message.sender),
      owner: channelOwner(channel.name),
      trace,
      delivery: {
        turnId: started.turnId,
        inbox: number,
        attempts: started.attempts,
        receivedAtMs: started.receivedAtMs,
        checkpoint: started.checkpoint,
        reply: (answer) => repliesOf(answer, channel, started, clock.nowMs()),
      },
    })
    ended('ok')
    const {
      account,
      message: { to },
    } = started
    const lane = replyLane({ channel: channel.name, account, to })
    options.onReplies(replies.map((reply) => ({ number: reply, channel: channel.name, account, lane, atMs: 0, cuts: 0 })))
    return 'done'
  } catch (error) {
    if (stopping.aborted) {
      await inbox.release(number)
      return { retryAtMs: clock.nowMs() + ABSENT_WAIT_MS }
    }
    ended('error')
    if (error instanceof AppError && error.code === 'rate_limited') {
      // The operator's budget is spent, which says nothing about this message.
      await inbox.release(number)
      return { retryAtMs: clock.nowMs() + retryDelayMs(1, error.retryAfterSecs) }
    }
    const isOver = started.attempts >= max_attempts || (error instanceof AppError && error.code === 'aborted')
    const reason = options.scrub(errorText(error))
    if (isOver) return bury(options, started, reason)
    const wished = error instanceof AppError ? error.retryAfterSecs : undefined
    const atMs = clock.nowMs() + retryDelayMs(started.attempts, wished)
    await inbox.retry(number, { error: reason, atMs })
    return { retryAtMs: atMs }
  }
}

async function bury(
  { store, clock, log, events }: InboxRunnerOptions,
  { number, channel, attempts }: StartedMessage | SpentMessage,
  error: string,
): Promise<WorkOutcome> {
  await store.inbox.bury(number, { error, atMs: clock.nowMs() })
  log.error('a message was given up', { channel, inbox: number, attempts, error, see: `sluice inbox show ${number}` })
  events.emit({ type: 'delivery', direction: 'inbound', channel, number, state: 'dead', error })
  return 'done'
}
