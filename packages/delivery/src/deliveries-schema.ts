/** What `/api/deliveries` answers, and `sluice inbox` and `sluice outbox` print as JSON. */
import * as v from 'valibot'

export const INBOX_STATES = ['pending', 'running', 'done', 'dead'] as const
export const OUTBOX_STATES = ['queued', 'sending', 'failed', 'sent', 'ambiguous', 'dead'] as const

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
  message: v.nullable(messageSchema),
  turn: v.nullable(turnSchema),
  replies: v.array(outboxRowSchema),
  raw: v.optional(v.pipe(nullableText, v.description('The request body; null once it is no longer kept'))),
  raw_base64: v.optional(v.pipe(v.string(), v.description('In place of `raw`, where the body is not UTF-8'))),
})

export const outboxEntrySchema = v.object({ ...outboxRowSchema.entries, turn: v.nullable(turnSchema) })
