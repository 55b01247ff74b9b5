/** Parses a message of the generic webhook. */
import { list, type Members, members, parseObject, text } from '@sluice/kit/foreign-json'
import { attachmentKind } from '@sluice/kit/media-type'
import { AppError, type Attachment, type Inbound, namePart, type Raw, thingsPart, unknownThing } from '@sluice/sdk/webhook'

/** The account of all messages, because a message does not name one. */
const ACCOUNT = 'default'
/** The headers with the id of a message whose body has none. A repeated delivery has the same id. */
const ID_HEADERS = ['webhook-id', 'idempotency-key']
const ATTACHMENTS_MAX = 20
const NAME_CHARS_MAX = 255

/**
 * Returns the message of a request; an empty list for other types of events and for our own replies. Throws `invalid_request` for a body other than a JSON
 * object, and for a message without sender, content or id.
 */
export function parse({ headers, body }: Pick<Raw, 'headers' | 'body'>): Inbound[] {
  const event = parseObject(body)
  const isMessage = event.type === undefined || event.type === 'message'
  if (!isMessage || isReply(event)) return []
  const sender = text(event.sender)
  const id = text(event.id) || ID_HEADERS.map((name) => headers[name]?.trim()).find((value) => value) || ''
  if (sender === '') throw new AppError('invalid_request', 'The message has no sender')
  if (id === '') throw new AppError('invalid_request', 'The message has no id: send the member `id` or the header webhook-id')
  const thread = text(event.thread_id)
  const replyTo = text(event.in_reply_to)
  const sentAtMs = Date.parse(text(event.sent_at))
  return [
    {
      id,
      account: ACCOUNT,
      sender,
      ...namePart(text(event.sender_name)),
      to: { to: sender, ...(thread && { thread }), replyTo: id },
      addressed: 'direct',
      ...contentOf(event),
      ...(replyTo && { inReplyTo: replyTo }),
      ...(Number.isNaN(sentAtMs) ? {} : { sentAtMs }),
    },
  ]
}

/** A receiver that posts every message back, ours included, must not start a conversation of Sluice with itself. */
const isReply = ({ recipient, sender }: Members): boolean => recipient !== undefined && sender === undefined

type Content = Pick<Inbound, 'text' | 'attachments' | 'things' | 'changes'>

function contentOf(event: Members): Content {
  const deleted = text(event.deletes)
  if (deleted !== '') return { text: '', changes: { message: deleted, what: 'deleted', by: 'sender' } }
  const files = list(event.attachments).map(members)
  const found = files.map(attachmentOf).filter((one) => one !== undefined)
  const attachments = found.slice(0, ATTACHMENTS_MAX)
  const content = text(event.content)
  if (content === '' && attachments.length === 0) throw new AppError('invalid_request', 'The message has no content')
  const [lost, more] = [files.length - found.length, found.length - attachments.length]
  const things = [
    ...(lost > 0 ? [unknownThing(`attachments without a URL: ${lost}`)] : []),
    ...(more > 0 ? [unknownThing(`attachments beyond the first ${ATTACHMENTS_MAX}: ${more}`)] : []),
  ]
  const edited = text(event.edits)
  return {
    text: content,
    ...(attachments.length > 0 && { attachments }),
    ...thingsPart(things),
    ...(edited && { changes: { message: edited, what: 'edited' as const } }),
  }
}

/** Returns undefined for an attachment without a URL. */
function attachmentOf({ url, name, mime }: Members): Attachment | undefined {
  if (text(url) === '') return undefined
  const type = text(mime).trim().toLowerCase()
  const kind = attachmentKind(type)
  return { kind, name: text(name).slice(0, NAME_CHARS_MAX) || kind, ...(type && { mime: type }), source: { url: text(url) } }
}
