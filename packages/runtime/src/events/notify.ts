/** Tells people of an event, in the chats that stand for the dispatch targets (§2.5, §6 rule 3). */
import { randomUUID } from 'node:crypto'
import { type Conversation, targetsOf } from '@sluice/approvals'
import { waitingReplies } from '@sluice/delivery'
import { splitText } from '@sluice/kit'
import type { AskedTarget, NewReply } from '@sluice/sdk'
import type { Runtime } from '../runtime.ts'

const TITLE = 'Notification'

export interface Notification {
  readonly channels: readonly string[]
  /** Empty: a default one. */
  readonly title: string
  readonly message: string
  /** Overrides the configured conversations. */
  readonly channelId?: string
  /** The span that tells it; see `NewReply.trace`. */
  readonly trace?: string
}

/** Resolves once everything is durable in the outbox, to what became of each target. */
export async function notify(
  { channels, title, message, channelId, trace }: Notification,
  { clock, delivery, snapshot, store }: Pick<Runtime, 'clock' | 'delivery' | 'snapshot' | 'store'>,
): Promise<readonly AskedTarget[]> {
  const targets = targetsOf(channels, channelId, { channels: () => snapshot().channels, features: () => snapshot().features })
  const text = [title || TITLE, message].filter((part) => part.trim() !== '').join('\n\n')
  const groups = targets.map((target) =>
    'conversation' in target ? messagesOf(text, target.conversation, { nowMs: clock.nowMs(), trace }) : [],
  )
  const replies = groups.flat()
  const numbers = replies.length === 0 ? [] : await store.outbox.add(replies)
  delivery.queued(waitingReplies(replies, numbers))
  let at = 0
  return targets.map((target, index) => {
    if ('answer' in target) return target.answer
    const outbox = numbers.slice(at, at + (groups[index]?.length ?? 0))
    at += outbox.length
    return { channel: target.name, status: 'queued', detail: 'in the outbox', outbox }
  })
}

function messagesOf(
  text: string,
  { channel, account, to }: Conversation,
  { nowMs, trace }: { readonly nowMs: number; readonly trace: string | undefined },
): readonly NewReply[] {
  const parts = splitText(text.toWellFormed(), channel.limits)
  return parts.map((part, index) => ({
    channel: channel.name,
    account,
    to,
    text: part,
    part: index + 1,
    parts: parts.length,
    clientId: randomUUID(),
    turnId: null,
    createdAtMs: nowMs,
    ...(trace !== undefined && { trace }),
  }))
}
