/** Handles messages that answer approvals: the decision and the end of the message are one commit, and no turn runs. */
import { type People, type QueuedReply, waitingReplies } from '@sluice/delivery'
import {
  AppError,
  type Approval,
  type ApprovalStore,
  type Approvals,
  type Clock,
  type GatewayTexts,
  gatewayText,
  type InboxStore,
  type StartedMessage,
  typedText,
} from '@sluice/sdk'
import { type Answering, answererOf } from './answers.ts'
import { type Verdict, verdictOf } from './keywords.ts'
import { type ActorNames, lateText, named, noticeTo } from './prompts.ts'
import type { ReplyMatcher } from './replies.ts'

export interface ReplyHandling extends ActorNames, Answering {
  readonly people: Answering['people'] & Pick<People, 'refresh'>
  readonly store: Pick<ApprovalStore, 'get'>
  readonly inbox: Pick<InboxStore, 'done'>
  readonly matcher: Pick<ReplyMatcher, 'matchPress'>
  readonly clock: Clock
  readonly texts: GatewayTexts
  /** See `Approvals.decide`; the message `inbox` is done in the same commit if the decision wins. */
  decide(key: Approval, decision: Parameters<Approvals['decide']>[1], inbox: number): ReturnType<Approvals['decide']>
  /** Called with notices to send, once they are durable. */
  queued(replies: readonly QueuedReply[]): void
}

interface Reply {
  readonly approval: Approval
  readonly verdict: Verdict | undefined
}

/** Decides the approval, or tells the sender why the reply decides nothing. */
export async function handleReply(handling: ReplyHandling, started: StartedMessage): Promise<void> {
  const { number, channel, message } = started
  const { texts } = handling
  const nothingOpen = gatewayText('nothing_open', texts)
  await handling.people.refresh()
  const reply = await matchedReply(handling, started)
  if (!reply) return notify(handling, started, nothingOpen)
  const { approval, verdict } = reply
  if (approval.state !== 'pending') return notify(handling, started, lateText(await named(approval, handling), texts))
  if (!verdict) return notify(handling, started, nothingOpen)
  const { approved, feedback } = verdict
  const decision = {
    state: approved ? 'approved' : 'rejected',
    by: `${channel}:${message.sender}`,
    who: answererOf(approval, started, handling),
    ...(feedback !== null && { feedback }),
  } as const
  try {
    const decided = await handling.decide(approval, decision, number)
    if (!decided.won) await notify(handling, started, lateText(await named(decided.approval, handling), texts))
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'forbidden') throw error
    await notify(handling, started, gatewayText(isForPerson(approval) ? 'not_your_call' : 'not_your_decision', texts))
  }
}

const isForPerson = ({ person, decider }: Pick<Approval, 'person' | 'decider'>): boolean => person !== null && decider !== 'operator'

/** A text was matched to its approval when it arrived, and is not matched again. */
async function matchedReply(
  { store, matcher }: ReplyHandling,
  { channel, approval: key, message }: StartedMessage,
): Promise<Reply | undefined> {
  if (message.pressed) return matcher.matchPress(channel, message)
  const approval = key && (await store.get(key))
  return approval && { approval, verdict: verdictOf(typedText(message), approval) }
}

/** Answers the sender. The notice is queued and the message ended in one commit, so that it is sent once. */
async function notify(handling: ReplyHandling, { number, channel: name, account, message }: StartedMessage, text: string): Promise<void> {
  const { channels, clock, inbox, queued } = handling
  const nowMs = clock.nowMs()
  const channel = channels().find((candidate) => candidate.name === name)
  const notices = channel ? [noticeTo({ channel, account, to: message.to }, text, nowMs)] : []
  queued(waitingReplies(notices, await inbox.done(number, nowMs, notices)))
}
