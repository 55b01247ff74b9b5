/** The reply of a turn as messages of its channel: split at the platform's limit, each with an id that stays over retries. */
import { randomUUID } from 'node:crypto'
import type { Channel, NewReply, StartedMessage } from '@sluice/sdk'
import { splitText } from './split-text.ts'

export function repliesOf(text: string, channel: Channel, { account, message, turnId }: StartedMessage, nowMs: number): NewReply[] {
  const parts = text.trim() === '' ? [] : splitText(text, channel.limits)
  const { replyTo: _, ...unquoted } = message.to
  return parts.map((part, index) => ({
    channel: channel.name,
    account,
    // Only the first part quotes what it answers.
    to: index === 0 ? message.to : unquoted,
    text: part,
    part: index + 1,
    parts: parts.length,
    clientId: randomUUID(),
    turnId,
    createdAtMs: nowMs,
  }))
}
