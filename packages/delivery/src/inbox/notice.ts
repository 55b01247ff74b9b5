/** A short message of Sluice itself to the sender of a message. */
import { randomUUID } from 'node:crypto'
import { splitText } from '@sluice/kit'
import type { Channel, Inbound, MessageNews, NewReply } from '@sluice/sdk'

export const HOUR_MS = 3_600_000

type Target = Pick<Channel, 'name' | 'limits'>

/** Where a notice goes, and the time of the message that it follows. */
type Answered = Pick<Inbound, 'account' | 'to' | 'sentAtMs'>

/** Returns the text as one message, cut at the platform's limit. */
export function noticeTo(channel: Target, message: Answered, text: string, nowMs: number): NewReply {
  const [first = text] = splitText(text, channel.limits)
  return noticeOf(channel, message, { text: first, part: 1, parts: 1 }, nowMs)
}

/** Returns the text as one message or as several. */
export function noticesTo(channel: Target, message: Answered, text: string, nowMs: number): NewReply[] {
  const texts = splitText(text, channel.limits)
  return texts.map((part, at) => noticeOf(channel, message, { text: part, part: at + 1, parts: texts.length }, nowMs))
}

interface NewsText {
  /** The conversation. */
  readonly lane: string
  readonly cause: MessageNews['held']['cause']
  readonly text: string
}

/** Returns a notice that a conversation gets once an hour for each cause. */
export function hourlyNews(channel: Target, message: Answered, { lane, cause, text }: NewsText, nowMs: number): MessageNews {
  const held = { client: lane, cause, sinceMs: nowMs, untilMs: nowMs }
  return { held, quietMs: HOUR_MS, notice: [noticeTo(channel, message, text, nowMs)] }
}

const noticeOf = (
  channel: Target,
  { account, to, sentAtMs }: Answered,
  said: Pick<NewReply, 'text' | 'part' | 'parts'>,
  nowMs: number,
): NewReply => ({
  channel: channel.name,
  account,
  to,
  ...said,
  clientId: randomUUID(),
  turnId: null,
  createdAtMs: nowMs,
  ...(channel.limits.replyWindow && { extras: { answersAtMs: sentAtMs ?? nowMs } }),
})
