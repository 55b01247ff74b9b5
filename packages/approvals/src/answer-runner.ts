/** Works off the messages that answer approvals: the decision and the end of the message are one commit, and no turn runs. */
import { newTurnId } from '@sluice/agent'
import {
  channelNamed,
  type DeliveryApprovals,
  DeliveryQueue,
  type InboxRunnerOptions,
  keyOfLane,
  retryDelayMs,
  waitingReplies,
} from '@sluice/delivery'
import { type JobOutcome, LaneQueue } from '@sluice/kit'
import { type Approval, errorText, type StartedMessage } from '@sluice/sdk'
import { type Verdict, verdictOf } from './keywords.ts'
import { lateText, noticeTo } from './prompts.ts'
import type { ApprovalRegistry } from './registry.ts'

export interface AnswerRunnerOptions extends InboxRunnerOptions {
  readonly approvals: DeliveryApprovals & Pick<ApprovalRegistry, 'pressed' | 'get' | 'decide'>
}

/** Answers worked on at once. */
const ANSWERS_MAX = 4
/** A row whose channel is not there is looked at again so much later. */
const ABSENT_WAIT_MS = 5000

const NOTHING_OPEN = 'This answers nothing that is still open.'

export function createAnswerRunner(options: AnswerRunnerOptions): DeliveryQueue {
  const { clock, log, onDone } = options
  const lanes = new LaneQueue({ clock, permits: () => ANSWERS_MAX })
  return new DeliveryQueue({ lanes, clock, log, onDone, work: ({ number }) => work(options, number) })
}

async function work(options: AnswerRunnerOptions, number: number): Promise<JobOutcome> {
  const { clock, store, stopping } = options
  if (stopping.aborted) return { retryAtMs: clock.nowMs() + ABSENT_WAIT_MS }
  const { max_attempts } = options.config()
  const started = await store.inbox.start(number, newTurnId(clock.nowMs()), max_attempts)
  if (!started) return 'done'
  if ('spent' in started) {
    await store.inbox.bury(number, { error: 'it was started too often and never reached its end', atMs: clock.nowMs() })
    return 'done'
  }
  try {
    await take(options, started)
    return 'done'
  } catch (error) {
    options.log.error('an answer to an approval could not be taken', { inbox: number, error })
    const reason = options.scrub(errorText(error))
    if (started.attempts >= max_attempts) {
      await store.inbox.bury(number, { error: reason, atMs: clock.nowMs() })
      return 'done'
    }
    const atMs = clock.nowMs() + retryDelayMs(started.attempts)
    await store.inbox.retry(number, { error: reason, atMs })
    return { retryAtMs: atMs }
  }
}

async function take(options: AnswerRunnerOptions, started: StartedMessage): Promise<void> {
  const { approvals } = options
  const { number, channel, message } = started
  const answer = await answerOf(approvals, started)
  if (!answer?.verdict || answer.approval.state !== 'pending')
    return notice(options, started, answer ? lateOrNothing(answer.approval) : NOTHING_OPEN)
  const { approved, feedback } = answer.verdict
  const state = approved ? 'approved' : 'rejected'
  const decision = { state, by: `${channel}:${message.sender}`, ...(feedback !== null && { feedback }) } as const
  const { won, approval } = await approvals.decide(answer.approval, decision, number)
  if (!won) await notice(options, started, lateText(approval))
}

interface Answer {
  readonly approval: Approval
  readonly verdict: Verdict | undefined
}

/** A text was put into the lane of its approval when it came: where it stands does not change. */
async function answerOf(
  approvals: AnswerRunnerOptions['approvals'],
  { channel, session, message }: StartedMessage,
): Promise<Answer | undefined> {
  if (message.pressed) return approvals.pressed(channel, message)
  const key = keyOfLane(session)
  const approval = key && (await approvals.get(key))
  return approval && { approval, verdict: verdictOf(message.text, approval) }
}

const lateOrNothing = (approval: Approval): string => (approval.state === 'pending' ? NOTHING_OPEN : lateText(approval))

/** Says it where the message came from. The notice is queued and the message ended in one commit, so it is said exactly once. */
async function notice(
  options: AnswerRunnerOptions,
  { number, channel: name, account, message }: StartedMessage,
  text: string,
): Promise<void> {
  const nowMs = options.clock.nowMs()
  const channel = channelNamed(options, name)
  const replies = channel ? [noticeTo({ channel, account, to: message.to }, text, nowMs)] : []
  options.onReplies(waitingReplies(replies, await options.store.inbox.done(number, nowMs, replies)))
}
