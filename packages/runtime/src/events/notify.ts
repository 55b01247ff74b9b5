/** Notifies people of an event, in the chats of the dispatch targets. */
import { randomUUID } from 'node:crypto'
import { type Conversation, targetsOf } from '@sluice/approvals'
import { waitingReplies } from '@sluice/delivery'
import { splitText } from '@sluice/kit'
import type { AskedTarget, MessageNews, NewReply } from '@sluice/sdk'
import type { Runtime } from '../runtime.ts'

const TITLE = 'Notification'

export interface Notification {
  readonly channels: readonly string[]
  /** Empty: a default title is used. */
  readonly title: string
  readonly message: string
  /** The conversation to notify instead of the configured ones. */
  readonly channelId?: string
  /** The span of the notification; see `NewReply.trace`. */
  readonly trace?: string
}

/** Queues the messages durably in the outbox, and resolves to the outcome for each target. */
export async function notify(notification: Notification, runtime: Runtime): Promise<readonly AskedTarget[]> {
  const { delivery, store } = runtime
  const { targets, groups } = messagesOf(notification, runtime)
  const replies = groups.flat()
  const numbers = replies.length === 0 ? [] : await store.outbox.add(replies)
  delivery.queued(waitingReplies(replies, numbers))
  let next = 0
  return targets.map((target, index) => {
    if ('answer' in target) return target.answer
    const outbox = numbers.slice(next, next + (groups[index]?.length ?? 0))
    next += outbox.length
    return { channel: target.name, status: 'queued', detail: 'in the outbox', outbox }
  })
}

/** Queues the messages in the commit that records the notification. Resolves to false, and queues nothing, when it reports no news. */
export async function notifyNews(
  notification: Notification,
  { held, quietMs }: Pick<MessageNews, 'held' | 'quietMs'>,
  runtime: Runtime,
): Promise<boolean> {
  const { targets, groups } = messagesOf(notification, runtime)
  const notice = groups.flat()
  const numbers = await runtime.store.outbox.addNews({ held, quietMs, notice })
  if (!numbers) return false
  runtime.delivery.queued(waitingReplies(notice, numbers))
  for (const target of targets)
    if ('answer' in target) runtime.log.warn('operators not notified in a chat', { chat: target.name, reason: target.answer.detail })
  return true
}

/** Returns the targets, and the messages to each of them. */
function messagesOf({ channels, title, message, channelId, trace }: Notification, { clock, snapshot }: Runtime) {
  const targets = targetsOf(channels, channelId, { channels: () => snapshot().channels, features: () => snapshot().features })
  const text = [title || TITLE, message].filter((part) => part.trim() !== '').join('\n\n')
  const groups = targets.map((target) => ('conversation' in target ? repliesOf(text, target.conversation, clock.nowMs(), trace) : []))
  return { targets, groups }
}

function repliesOf(text: string, { channel, account, to }: Conversation, nowMs: number, trace: string | undefined): readonly NewReply[] {
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
