/**
 * Parses a webhook event, whose fields have different names in different versions of the platform. The present names follow
 * https://docs.wati.io/reference/message-received.
 */
import { parseObject, textAt, valueAt } from '@sluice/kit/foreign-json'
import { normaliseNumber } from '@sluice/kit/phone-numbers'
import {
  AppError,
  type Attachment,
  forwardedPart,
  type Inbound,
  namePart,
  type Raw,
  type Thing,
  thing,
  thingsPart,
} from '@sluice/sdk/webhook'

/** `message_bsuid` comes for senders who hide their number. For other senders both may come, with the same message id. */
const MESSAGE_EVENTS = ['message', 'message_bsuid']

/** The text of a message is its own, or the title of the button or list row that the sender tapped. */
const TEXT_PATHS = [
  ...['text', 'message.text', 'message.body'],
  ...['buttonReply', 'interactiveButtonReply', 'listReply'].flatMap((reply) => [`${reply}.title`, `${reply}.text`]),
]

/** A number below this is a time in seconds (until the year 2286); a larger number is in milliseconds. */
const SECONDS_MAX = 10_000_000_000
/** The largest time value of a JavaScript `Date`. */
const MS_MAX = 8_640_000_000_000_000

/** How many words of an object without a documented shape arrive. */
const WORDS_MAX = 20
const WORD_CHARS_MAX = 200
const DEPTH_MAX = 5
const NAME_CHARS_MAX = 255
const EXTENSION = /.\.[a-z0-9]{1,8}$/i

/** For each type of message: the kind of its attachment, and its name when the URL has none. */
const MEDIA: Readonly<Record<string, readonly [kind: Attachment['kind'], name: string]>> = {
  image: ['image', 'image'],
  sticker: ['image', 'sticker'],
  audio: ['audio', 'audio.ogg'],
  voice: ['audio', 'voice.ogg'],
  video: ['video', 'video'],
  document: ['file', 'document'],
}

/**
 * Returns the message in an event; an empty list for other events, own messages, reactions and messages without content.
 * Throws `invalid_request` for a message without an id or a sender.
 */
export function parse({ body }: Pick<Raw, 'body'>, { account }: { readonly account: string }): Inbound[] {
  const event = parseObject(body)
  const type = textAt(event, 'type') || 'text'
  // Events of old versions have no event type.
  const isMessage = event.eventType === undefined || MESSAGE_EVENTS.some((name) => name === event.eventType)
  if (!isMessage || isOwn(event) || type === 'reaction') return []
  const content = contentOf(event, type)
  if (!content) return []
  const id = idAt(event, 'whatsappMessageId', 'id')
  const sender = normaliseNumber(idAt(event, 'waId', 'wa_id', 'from', 'bsuid'))
  if (id === '' || sender === '') throw new AppError('invalid_request', 'The message has no id or no sender')
  const sentAtMs = timeAt(event, 'timestamp', 'created')
  const quoted = textAt(event, 'replyContextId')
  return [
    {
      id,
      account: idAt(event, 'channelPhoneNumber') || account,
      sender,
      ...namePart(textAt(event, 'senderName')),
      to: { to: recipientOf(sender) },
      addressed: 'direct',
      ...(isForwarded(event) ? { text: '', ...forwardedPart(content) } : content),
      ...(quoted !== '' && { inReplyTo: quoted }),
      ...(sentAtMs !== undefined && { sentAtMs }),
    },
  ]
}

/** Returns a sender in the form that the API expects for a recipient. */
export const recipientOf = (sender: string): string => sender.replace(/^\+/, '')

/** The platform sends a boolean; form builders between the platform and Sluice send a text. */
const isOwn = (event: unknown): boolean =>
  ['owner', 'fromMe', 'from_me'].some((key) => valueAt(event, key) === true || /^true$/i.test(textAt(event, key).trim()))

/** The words and files of a forwarded message come from others, whom the platform does not name. */
const isForwarded = (event: unknown): boolean => ['forwarded', 'frequentlyForwarded'].some((key) => valueAt(event, key) === true)

/** Returns the content of a message; undefined for a text without words. A kind that has no text arrives as a line. */
function contentOf(event: unknown, type: string): Pick<Inbound, 'text' | 'attachments' | 'things'> | undefined {
  const text = textAt(event, ...TEXT_PATHS)
  const attachment = attachmentOf(event, type, text)
  if (attachment) return { text: attachment.name === text.trim() ? '' : text, attachments: [attachment] }
  const isThing = type === 'contacts' || (text === '' && type !== 'text')
  if (!isThing) return text === '' ? undefined : { text }
  return { text, ...thingsPart([thingOf(event, type)]) }
}

/** Describes content by the words in it, because the platform documents the shape of neither `data` nor `messageContact`. */
function thingOf(event: unknown, type: string): Thing {
  const words = ['messageContact', 'data'].flatMap((path) => wordsIn(valueAt(event, path))).slice(0, WORDS_MAX)
  if (type === 'contacts') return thing('contact', ...words)
  return type === 'location' ? thing('location', ...words) : thing('unknown', type, ...words)
}

/** Returns the texts and numbers in a value, in their order. */
function wordsIn(value: unknown, depth = 0): readonly string[] {
  if (typeof value === 'string' || typeof value === 'number') return [String(value).trim().slice(0, WORD_CHARS_MAX)].filter(Boolean)
  if (typeof value !== 'object' || value === null || depth === DEPTH_MAX) return []
  return Object.values(value)
    .slice(0, WORDS_MAX)
    .flatMap((member) => wordsIn(member, depth + 1))
}

/** Returns the first id at one of the paths, which is a text or a whole number; empty without one. */
function idAt(json: unknown, ...paths: string[]): string {
  for (const path of paths) {
    const value = valueAt(json, path)
    const id = Number.isSafeInteger(value) ? String(value) : textAt(json, path)
    if (id !== '') return id
  }
  return ''
}

/** Returns the first time at one of the paths, in milliseconds since 1970; undefined without one. */
const timeAt = (json: unknown, ...paths: string[]): number | undefined =>
  paths.map((path) => parseTimeMs(valueAt(json, path))).find((ms) => ms !== undefined)

/** Parses seconds or milliseconds since 1970, as a number or as digits, or an RFC 3339 time. */
function parseTimeMs(value: unknown): number | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const text = String(value)
  const count = Number(text)
  const isDate = /^\d{4}-\d\d-\d\dT/.test(text)
  const ms = isDate ? Date.parse(text) : Math.round(count > SECONDS_MAX ? count : count * 1000)
  return ms > 0 && ms <= MS_MAX ? ms : undefined
}

/**
 * Returns the attachment of a message; undefined for a message of another type or without a URL. For a document without a
 * caption, `text` is the name of the sender's file, while the URL has the name of the platform's copy.
 */
function attachmentOf(event: unknown, type: string, text: string): Attachment | undefined {
  const media = Object.hasOwn(MEDIA, type) ? MEDIA[type] : undefined
  const url = textAt(event, 'data', 'mediaUrl', 'media_url').trim()
  if (!media || url === '') return undefined
  const [kind, defaultName] = media
  const storedName = fileNameIn(url)
  const sentName = type === 'document' && isSentName(text.trim(), storedName) ? text.trim() : undefined
  return { kind, name: sentName ?? storedName ?? defaultName, source: { url } }
}

/** Returns whether the text is a plain file name with the extension of the stored file. */
function isSentName(text: string, storedName: string | undefined): boolean {
  const isName = text.length <= NAME_CHARS_MAX && EXTENSION.test(text) && !/[\n\r/\\]/.test(text)
  return isName && (storedName === undefined || extensionOf(storedName) === extensionOf(text))
}

const extensionOf = (name: string): string => name.slice(name.lastIndexOf('.') + 1).toLowerCase()

/** Returns the last segment of the file path in a URL if it has an extension, which tells the format. */
function fileNameIn(text: string): string | undefined {
  const url = URL.parse(text)
  const path = url?.searchParams.get('fileName') ?? url?.pathname ?? ''
  const name = path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1).slice(-NAME_CHARS_MAX)
  return EXTENSION.test(name) ? name : undefined
}
