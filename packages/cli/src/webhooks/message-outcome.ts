/** Determines the outcome of a sample message, from the answer to its request and from the store. */
import type { ShownInboxEntry } from '@sluice/delivery/inspector'
import type { ReadyChannel } from '@sluice/runtime/configured-channels'
import { isAllowed, type Webhook } from '@sluice/sdk'
import { type Answer, explainAnswer, isAccepted, isRefused, type SentRequest } from './exchange.ts'
import { type FollowOptions, findMessage, followMessage, type Inbox, isOver, searchInbox } from './follow-message.ts'

export interface MessageOutcome {
  readonly verdict: 'accepted' | 'duplicate' | 'taken' | 'denied' | 'ignored' | 'refused'
  /** The verdict in words, with a cure. */
  readonly detail: string
  /** True: the request was refused, as it had to be. */
  readonly isExpected?: true
  readonly entry?: ShownInboxEntry
}

export interface SentMessage extends FollowOptions {
  readonly inbox: Inbox
  readonly ready: ReadyChannel
  readonly webhook: Webhook
  readonly request: SentRequest
  readonly answer: Answer
  readonly sender: string
  /** The platform's id of the message. */
  readonly id: string
  /** The reason for which the request must be refused: it is corrupt, or only the platform can sign it. */
  readonly mustRefuse?: keyof typeof REFUSALS
  /** The largest number in the inbox before the request: a message with a larger number is new. */
  readonly after: number
}

const REFUSALS = {
  corrupt: 'refused, as a corrupt request must be',
  unverifiable: 'refused, as it must be: only the platform can sign a request here, so its first request will show the rest',
} as const

export async function messageOutcome(sent: SentMessage): Promise<MessageOutcome> {
  const { ready, webhook, request, answer, sender, inbox } = sent
  const { channel, section, allowKey } = ready
  if (sent.mustRefuse && isRefused(answer)) return { verdict: 'refused', detail: REFUSALS[sent.mustRefuse], isExpected: true }
  if (!(await isAccepted(answer, webhook, request))) return { verdict: 'refused', detail: explainAnswer(answer) }
  const stored = await searchInbox(inbox, channel.name, sent.id)
  if (!stored && channel.listen)
    return { verdict: 'taken', detail: 'accepted: it is a notification, and the daemon fetches the message itself' }
  if (!isAllowed(channel.allow, sender, channel.normalise?.bind(channel), channel.matches?.bind(channel)))
    return { verdict: 'denied', detail: `dropped, because ${sender} may not use the agent: add it to ${allowKey} in [${section}]` }
  const row = stored ?? (await findMessage(inbox, channel.name, sent.id, sent.signal))
  if (!row) {
    const detail = 'the message is not in the store: the daemon did not recognize a message, or works on another data directory'
    return { verdict: 'ignored', detail }
  }
  const isNew = row.number > sent.after
  const entry = await followMessage(inbox, row.number, sent)
  return {
    verdict: isNew ? 'accepted' : 'duplicate',
    detail: `${isNew ? 'accepted as' : 'a duplicate of'} message ${row.number}`,
    ...(entry && { entry }),
  }
}

/**
 * Returns true if the message arrived and, unless `waitMs` is 0, all its replies were sent; or if it was refused as it had to be.
 * The replies need not be sent if the message is `unanswerable`.
 */
export function isSuccess({ verdict, isExpected, entry }: MessageOutcome, waitMs: number, unanswerable: boolean): boolean {
  if (isExpected || verdict === 'taken') return true
  if (verdict !== 'accepted' && verdict !== 'duplicate') return false
  if (!entry || entry.state === 'dead') return false
  return waitMs === 0 || (isOver(entry) && (unanswerable || entry.replies.every(({ state }) => state === 'sent')))
}
