/**
 * Rows of inbox and outbox as `/api/deliveries` answers them and `sluice inbox` and `sluice outbox` print them as JSON. Operators see
 * the texts, and no row holds a secret.
 */

import { isoTime } from '@sluice/kit'
import { type Address, type Attachment, type InboxEntry, type InboxRow, type OutboxRow, type TurnRow, wordsOf } from '@sluice/sdk'
import * as v from 'valibot'
import { INBOX_STATES, OUTBOX_STATES } from './states.ts'

const nullableText = v.nullable(v.string())

const addressSchema = v.object({
  to: v.string(),
  thread: nullableText,
  reply_to: nullableText,
  more: v.nullable(v.record(v.string(), v.string())),
})

export const inboxRowSchema = v.object({
  number: v.number(),
  channel: v.string(),
  account: v.string(),
  message_id: v.string(),
  sender: v.string(),
  session: v.string(),
  state: v.picklist(INBOX_STATES),
  attempts: v.number(),
  received_at: v.string(),
  next_at: nullableText,
  ended_at: nullableText,
  turn_id: nullableText,
  error: nullableText,
})

export const outboxRowSchema = v.object({
  number: v.number(),
  channel: v.string(),
  account: v.string(),
  to: addressSchema,
  text: nullableText,
  part: v.number(),
  parts: v.number(),
  state: v.picklist(OUTBOX_STATES),
  attempts: v.number(),
  created_at: v.string(),
  next_at: nullableText,
  ended_at: nullableText,
  provider_id: nullableText,
  client_id: v.string(),
  inbox: v.nullable(v.number()),
  turn_id: nullableText,
  repeated: v.pipe(v.boolean(), v.description('True: it was sent again after an answer 503, and may have arrived twice')),
  error: nullableText,
})

const turnSchema = v.object({
  turn_id: v.string(),
  status: v.picklist(['queued', 'running', 'done', 'failed', 'aborted']),
  model: nullableText,
  response: nullableText,
  error: v.nullable(v.object({ code: v.string(), message: v.string() })),
})

const messageSchema = v.object({
  to: addressSchema,
  text: v.string(),
  sent_at: nullableText,
  attachments: v.array(
    v.object({
      kind: v.picklist(['image', 'audio', 'video', 'file']),
      name: v.string(),
      mime: nullableText,
      url: nullableText,
      id: nullableText,
    }),
  ),
})

export const inboxEntrySchema = v.object({
  ...inboxRowSchema.entries,
  verdict: v.string(),
  joined_to: v.optional(v.pipe(v.number(), v.description('The message whose turn got the words of this one'))),
  message: v.nullable(messageSchema),
  turn: v.nullable(turnSchema),
  replies: v.array(outboxRowSchema),
  raw: v.optional(
    v.pipe(
      nullableText,
      v.description('The request body, or the message where its channel stores no request; null after retention has dropped it'),
    ),
  ),
  raw_base64: v.optional(v.pipe(v.string(), v.description('In place of `raw`, where the body is not UTF-8'))),
})

export const outboxEntrySchema = v.object({ ...outboxRowSchema.entries, turn: v.nullable(turnSchema) })

export type ShownInboxRow = v.InferOutput<typeof inboxRowSchema>
export type ShownOutboxRow = v.InferOutput<typeof outboxRowSchema>
export type ShownInboxEntry = v.InferOutput<typeof inboxEntrySchema>
export type ShownOutboxEntry = v.InferOutput<typeof outboxEntrySchema>

export const shownInboxRow = (row: InboxRow): ShownInboxRow => ({
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

export const shownOutboxRow = (row: OutboxRow): ShownOutboxRow => ({
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
  repeated: row.repeated,
  error: row.error,
})

export const shownInboxEntry = (entry: InboxEntry, turn: TurnRow | undefined): ShownInboxEntry => ({
  ...shownInboxRow(entry),
  verdict: entry.verdict,
  ...(entry.joinedTo !== undefined && { joined_to: entry.joinedTo }),
  message: entry.message && {
    to: shownAddress(entry.message.to),
    text: wordsOf(entry.message),
    sent_at: isoTime(entry.message.sentAtMs ?? null),
    attachments: (entry.message.attachments ?? []).map(shownAttachment),
  },
  turn: shownTurn(turn),
  replies: entry.replies.map(shownOutboxRow),
  // A message of a connection came in no request.
  ...shownRaw(entry.raw ?? (entry.message && Buffer.from(JSON.stringify(entry.message)))),
})

export const shownOutboxEntry = (row: OutboxRow, turn: TurnRow | undefined): ShownOutboxEntry => ({
  ...shownOutboxRow(row),
  turn: shownTurn(turn),
})

/** Decodes UTF-8; undefined for other bytes. */
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

const shownTurn = (turn: TurnRow | undefined): ShownInboxEntry['turn'] =>
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
