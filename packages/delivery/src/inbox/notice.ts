/** A short message of Sluice itself to the sender of a message. */
import { randomUUID } from 'node:crypto'
import { splitText } from '@sluice/kit'
import type { Channel, Inbound, NewReply } from '@sluice/sdk'

/** Returns the text as one message, cut at the platform's limit. */
export function noticeTo(channel: Channel, { account, to, sentAtMs }: Inbound, text: string, nowMs: number): NewReply {
  const [first = text] = splitText(text, channel.limits)
  return {
    channel: channel.name,
    account,
    to,
    text: first,
    part: 1,
    parts: 1,
    clientId: randomUUID(),
    turnId: null,
    createdAtMs: nowMs,
    ...(channel.limits.replyWindow && { extras: { answersAtMs: sentAtMs ?? nowMs } }),
  }
}
