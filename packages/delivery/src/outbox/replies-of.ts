/** Splits the reply of a turn into messages of the platform's length, each with a client id that stays the same over retries. */
import { randomUUID } from 'node:crypto'
import {
  agentOfSession,
  type Channel,
  MAIN_AGENT,
  type MarkedFile,
  type NewReply,
  type ReplyExtras,
  type StartedMessage,
} from '@sluice/sdk'
import { takeFiles } from './reply-files.ts'
import type { ReplyPart, ReplyParts } from './reply-parts.ts'

/** Replaces the draft of a reply without text. */
export const NO_TEXT = '(no answer)'
const FILES_ONLY = '(attached)'

export interface ReplyOptions {
  readonly channel: Channel
  readonly started: StartedMessage
  readonly nowMs: number
  readonly partsOf: ReplyParts
  /** The provider's id of the draft, which the first part replaces. */
  readonly draft?: string | undefined
  /** The span of the turn; see `NewReply.trace`. */
  readonly trace?: string | undefined
}

export function repliesOf(
  answer: string,
  marked: readonly MarkedFile[],
  { channel, started, nowMs, partsOf, draft, trace }: ReplyOptions,
): NewReply[] {
  const { account, session, message, turnId } = started
  const agent = agentOfSession(session)
  const { text, files } = takeFiles(answer, marked, channel.limits)
  const split = partsOf(text, channel)
  const parts: ReplyPart[] = split.length === 0 && draft !== undefined ? [{ text: files.length > 0 ? FILES_ONLY : NO_TEXT }] : [...split]
  // An edit carries no files.
  if (files.length > 0 && (parts.length === 0 || (draft !== undefined && parts.length === 1))) parts.push({ text: '' })
  const { replyTo: _, ...unquoted } = message.to
  return parts.map(({ text: part, styles }, index) => {
    const extras: ReplyExtras = {
      ...(styles && { styles }),
      ...(draft !== undefined && index === 0 && { edits: draft, elseSend: true }),
      ...(files.length > 0 && index === parts.length - 1 && { files, session, ...(agent !== MAIN_AGENT && { agent }) }),
      ...(channel.limits.replyWindow && { answersAtMs: message.sentAtMs ?? nowMs }),
    }
    return {
      channel: channel.name,
      account,
      // Only the first part quotes the message that it answers.
      to: index === 0 ? message.to : unquoted,
      text: part,
      part: index + 1,
      parts: parts.length,
      clientId: randomUUID(),
      turnId,
      createdAtMs: nowMs,
      ...(trace !== undefined && { trace }),
      ...(Object.keys(extras).length > 0 && { extras }),
    }
  })
}
