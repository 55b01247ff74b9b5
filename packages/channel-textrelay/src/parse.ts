/** Parses a webhook event in the payload version 2026-02-03 or 2025-01-01. */
import { parseObject, textAt, valueAt } from '@sluice/kit/foreign-json'
import { attachmentKind } from '@sluice/kit/media-type'
import {
  type Address,
  AppError,
  type Attachment,
  type Inbound,
  type Raw,
  type Thing,
  thing,
  thingsPart,
  unknownThing,
} from '@sluice/sdk/webhook'
import { normaliseHandle } from './handle.ts'

/** The platform's own limit for one message. */
const PARTS_MAX = 100
const NAME_CHARS_MAX = 255

/**
 * Returns the message in an event; an empty list for other events, own messages and messages without content. Throws
 * `invalid_request` for a message without an id or a sender. `fromPhone` is our own number.
 */
export function parse({ body }: Pick<Raw, 'body'>, { fromPhone }: { readonly fromPhone: string }): Inbound[] {
  const event = parseObject(body)
  const { data } = event
  const isEdit = event.event_type === 'message.edited'
  const sender = normaliseHandle(textAt(data, 'sender_handle.handle', 'from_handle.handle', 'from'))
  if ((event.event_type !== 'message.received' && !isEdit) || isOwn(data) || sender === fromPhone) return []
  const content = isEdit ? editIn(data) : contentOf(valueAt(data, 'parts') ?? valueAt(data, 'message.parts'))
  if (!content) return []
  // Each edit of a message has an event id of its own.
  const message = textAt(data, 'id', 'message.id')
  const id = isEdit ? textAt(event, 'event_id') : message || textAt(event, 'event_id')
  if (id === '' || sender === '') throw new AppError('invalid_request', 'The message has no id or no sender')
  const quoted = textAt(data, 'reply_to.message_id', 'message.reply_to.message_id')
  const sentAtMs = Date.parse(textAt(data, 'edited_at', 'sent_at', 'message.sent_at') || textAt(event, 'created_at'))
  return [
    {
      id,
      account: textAt(data, 'chat.owner_handle.handle', 'recipient_handle.handle', 'recipient_phone') || fromPhone,
      sender,
      to: addressOf(data, sender),
      addressed: isGroup(data) ? 'overheard' : 'direct',
      ...content,
      ...(quoted !== '' && { inReplyTo: quoted }),
      ...(Number.isNaN(sentAtMs) ? {} : { sentAtMs }),
    },
  ]
}

const isOwn = (data: unknown): boolean =>
  valueAt(data, 'is_from_me') === true || valueAt(data, 'sender_handle.is_me') === true || valueAt(data, 'direction') === 'outbound'

/**
 * Returns the chat to reply to. In a chat of two, the address also has the sender's handle, for a new chat if the platform
 * deletes this one. A group has no such fallback, because its replies are not for one member alone.
 */
function addressOf(data: unknown, sender: string): Address {
  const chat = textAt(data, 'chat.id', 'chat_id')
  if (chat === '') return { to: sender }
  return { to: chat, ...(isGroup(data) ? {} : { more: { handle: sender } }) }
}

/** The platform marks no mentions. */
const isGroup = (data: unknown): boolean => valueAt(data, 'chat.is_group') === true || valueAt(data, 'is_group') === true

/**
 * Returns the change of an edit, which names only the part that has a new text. Source: `MessageEditedWebhookEvent` of `@linqapp/sdk`
 * 0.28.2.
 */
function editIn(data: unknown): Pick<Inbound, 'text' | 'changes'> | undefined {
  const [message, text] = [textAt(data, 'id'), textAt(data, 'part.text')]
  return message === '' || text === '' ? undefined : { text, changes: { message, what: 'edited', only: 'text' } }
}

const TEXTS = ['text', 'link']
const FILES = ['media', 'image']
const CAPTIONS = ['caption', 'subcaption', 'trailing_caption', 'trailing_subcaption']
const APP_WORDS = ['app.name', 'fallback_text', ...CAPTIONS.map((caption) => `layout.${caption}`), 'url']

/** Returns the content of the parts; undefined when they have none. */
function contentOf(parts: unknown): Pick<Inbound, 'text' | 'attachments' | 'things'> | undefined {
  if (!Array.isArray(parts)) return undefined
  const known = parts.slice(0, PARTS_MAX)
  const text = known
    .filter((part) => TEXTS.includes(textAt(part, 'type')))
    .map((part) => textAt(part, 'value'))
    .filter((value) => value !== '')
    .join('\n')
  const attachments = known.map(attachmentOf).filter((attachment) => attachment !== undefined)
  const things = known.flatMap(thingIn)
  if (text === '' && attachments.length === 0 && things.length === 0) return undefined
  return { text, ...(attachments.length > 0 && { attachments }), ...thingsPart(things) }
}

/**
 * Describes a part of another type: the message of an iMessage app has a text for clients without the app, which the app wrote. Source:
 * `SchemasIMessageAppPartResponse` of `@linqapp/sdk` 0.28.2.
 */
function thingIn(part: unknown): readonly Thing[] {
  const type = textAt(part, 'type')
  if (type === '' || TEXTS.includes(type)) return []
  // A file without an address cannot be fetched.
  if (FILES.includes(type)) return attachmentOf(part) ? [] : [unknownThing([type, textAt(part, 'filename')].filter(Boolean).join(', '))]
  const app = thing('link', ...(type === 'imessage_app' ? new Set(APP_WORDS.map((path) => textAt(part, path))) : []))
  return [app.text === '' ? unknownThing(type) : app]
}

/** Returns the attachment in a part of a message; undefined for a part of another type or without a URL. */
function attachmentOf(part: unknown): Attachment | undefined {
  if (!FILES.includes(textAt(part, 'type'))) return undefined
  const url = textAt(part, 'url', 'value')
  if (url === '') return undefined
  const mime = textAt(part, 'mime_type', 'content_type').trim().toLowerCase()
  const kind = textAt(part, 'type') === 'image' ? 'image' : attachmentKind(mime)
  const name = textAt(part, 'filename').slice(0, NAME_CHARS_MAX) || kind
  return { kind, name, ...(mime && { mime }), source: { url } }
}
