/** Inbox and outbox rows as the API and the command line show them to an operator: texts included, secrets in none of them. */

import { isoTime } from '@sluice/kit'
import type { Address, Attachment, InboxEntry, InboxRow, OutboxRow, TurnRow } from '@sluice/sdk'
import type * as v from 'valibot'
import type { inboxEntrySchema, inboxRowSchema, outboxEntrySchema, outboxRowSchema } from './deliveries-schema.ts'

export const shownInboxRow = (row: InboxRow): v.InferOutput<typeof inboxRowSchema> => ({
  number: row.number,
  channel: row.channel,
  account: row.account,
  message_id: row.messageId,
  sender: row.sender,
  session: row.session,
  state: row.state,
  attempts: row.attempts,
  received_at: isoTime(row.receivedAtMs),
  next_at: isoTime(row.nextAtMs),
  ended_at: isoTime(row.endedAtMs),
  turn_id: row.turnId,
  error: row.error,
})

export const shownOutboxRow = (row: OutboxRow): v.InferOutput<typeof outboxRowSchema> => ({
  number: row.number,
  channel: row.channel,
  account: row.account,
  to: shownAddress(row.to),
  text: row.text,
  part: row.part,
  parts: row.parts,
  state: row.state,
  attempts: row.attempts,
  created_at: isoTime(row.createdAtMs),
  next_at: isoTime(row.nextAtMs),
  ended_at: isoTime(row.endedAtMs),
  provider_id: row.providerId,
  client_id: row.clientId,
  inbox: row.inbox,
  turn_id: row.turnId,
  error: row.error,
})

export const shownInboxEntry = (entry: InboxEntry, turn: TurnRow | undefined): v.InferOutput<typeof inboxEntrySchema> => ({
  ...shownInboxRow(entry),
  verdict: entry.verdict,
  message: entry.message && {
    to: shownAddress(entry.message.to),
    text: entry.message.text,
    sent_at: isoTime(entry.message.sentAtMs ?? null),
    attachments: (entry.message.attachments ?? []).map(shownAttachment),
  },
  turn: shownTurn(turn),
  replies: entry.replies.map(shownOutboxRow),
  ...shownRaw(entry.raw),
})

export const shownOutboxEntry = (row: OutboxRow, turn: TurnRow | undefined): v.InferOutput<typeof outboxEntrySchema> => ({
  ...shownOutboxRow(row),
  turn: shownTurn(turn),
})

/** The text of these bytes; undefined if they are not UTF-8. */
export function utf8Text(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function shownRaw(raw: Uint8Array | null): { raw: string | null } | { raw_base64: string } {
  if (raw === null) return { raw: null }
  const text = utf8Text(raw)
  return text === undefined ? { raw_base64: Buffer.from(raw).toString('base64') } : { raw: text }
}

const shownTurn = (turn: TurnRow | undefined): v.InferOutput<typeof inboxEntrySchema>['turn'] =>
  turn ? { turn_id: turn.id, status: turn.status, model: turn.model, response: turn.response, error: turn.error } : null

const shownAddress = ({ to, thread, replyTo, more }: Address) => ({
  to,
  thread: thread ?? null,
  reply_to: replyTo ?? null,
  more: more ? { ...more } : null,
})

const shownAttachment = ({ kind, name, mime, source }: Attachment) => ({
  kind,
  name,
  mime: mime ?? null,
  url: 'url' in source ? source.url : null,
  id: 'id' in source ? source.id : null,
})
