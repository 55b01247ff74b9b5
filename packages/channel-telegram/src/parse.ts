/** Parses an update of the Bot API: a message, the edit of a message, or the press of a button. */
import { attachmentKind } from '@sluice/kit'
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import type { Attachment, Inbound } from '@sluice/sdk'
import { addressedText, type Bot, repliedTo } from './mention.ts'

export interface Parsed {
  /** Undefined if the update contains no message for the bot. `query` must be answered nevertheless. */
  readonly inbound?: Inbound
  /** The sender's current user name; empty if there is none. */
  readonly username: string
  /** The id of a press. Its button shows a progress indicator until the query is answered. */
  readonly query?: string
}

/**
 * Returns undefined for an update without a message for the bot: messages of bots, of the service and on behalf of a chat, and,
 * with `mentionOnly`, messages in a group that are not addressed to the bot. The value of a press comes from the sender's
 * client and need not be the value of any button.
 */
export function parseUpdate(update: unknown, bot: Bot, mentionOnly: boolean): Parsed | undefined {
  const { update_id: id, message, edited_message: edited, callback_query: query } = members(update)
  if (message !== undefined) return parseMessage(members(message), bot, mentionOnly)
  if (edited !== undefined) return parseEdit(members(edited), bot, `edit:${id}`)
  return query === undefined ? undefined : parsePress(members(query), bot)
}

function parseMessage(message: Members, bot: Bot, mentionOnly: boolean): Parsed | undefined {
  const chat = idText(members(message.chat).id)
  const number = idText(message.message_id)
  const from = members(message.from)
  const sender = idText(from.id)
  // A message on behalf of a chat carries the id of a bot or of the service as its sender.
  if (chat === '' || number === '' || sender === '' || from.is_bot === true || message.sender_chat !== undefined) return undefined
  const addressed = addressedText(message, bot)
  const isGroup = ['group', 'supergroup'].includes(text(members(message.chat).type))
  if (isGroup && mentionOnly && !addressed.isAddressed) return undefined
  const written = isGroup ? addressed.text : text(message.text) || text(message.caption)
  const attachment = attachmentOf(message)
  const content = written.trim() === '' ? describeContent(message) : written
  if (content === '' && !attachment) return undefined
  const quoted = idText(repliedTo(message).message_id)
  return {
    username: text(from.username),
    inbound: {
      id: messageId(chat, number),
      account: bot.id,
      sender,
      to: { to: chat, ...threadOf(message), replyTo: number },
      text: content,
      ...(typeof message.date === 'number' && message.date > 0 && { sentAtMs: message.date * 1000 }),
      ...(attachment && { attachments: [attachment] }),
      ...(quoted !== '' && { inReplyTo: messageId(chat, quoted) }),
    },
  }
}

/**
 * Returns undefined for an edit without a text, such as each position of a person who shares a live location. An edit need not
 * mention the bot: it counts if its message did.
 */
function parseEdit(message: Members, bot: Bot, id: string): Parsed | undefined {
  if (text(message.text).trim() === '' && text(message.caption).trim() === '') return undefined
  const parsed = parseMessage(message, bot, false)
  if (!parsed?.inbound) return undefined
  return { ...parsed, inbound: { ...parsed.inbound, id, changes: { message: parsed.inbound.id, what: 'edited' } } }
}

function parsePress({ id, from, data, message }: Members, bot: Bot): Parsed | undefined {
  const query = text(id)
  if (query === '') return undefined
  const shown = members(message)
  const chat = idText(members(shown.chat).id)
  const number = idText(shown.message_id)
  const sender = idText(members(from).id)
  const username = text(members(from).username)
  const isComplete = chat !== '' && number !== '' && sender !== '' && text(data) !== '' && members(from).is_bot !== true
  if (!isComplete) return { username, query }
  return {
    username,
    query,
    inbound: {
      id: `cb:${query}`,
      account: bot.id,
      sender,
      to: { to: chat, ...threadOf(shown), replyTo: number },
      text: '',
      pressed: { message: messageId(chat, number), value: text(data) },
    },
  }
}

/** Only topics are threads that can be written to. Outside of topics, the API uses a thread id for a chain of replies. */
const threadOf = ({ is_topic_message: isTopic, message_thread_id: thread }: Members): { thread?: string } =>
  isTopic === true && idText(thread) !== '' ? { thread: idText(thread) } : {}

/** Returns the id of a message. Its number is unique only within its chat, so the id contains both. */
export const messageId = (chat: string, number: unknown): string => `${chat}:${number}`

/** Returns the number in an id of `messageId`, or of a bare number; undefined for any other text. */
export function messageNumber(id: string): number | undefined {
  const number = Number(/(?:^|:)(\d+)$/.exec(id)?.[1])
  return Number.isSafeInteger(number) ? number : undefined
}

/** Returns the chat in an id of `messageId`; undefined for any other text. */
export const chatOf = (id: string): string | undefined => /^(.+):\d+$/.exec(id)?.[1]

/** Returns an id of the API, an integer of at most 52 bits, as text; empty for any other value. */
const idText = (value: unknown): string => (Number.isSafeInteger(value) && value !== 0 ? String(value) : '')

/** The members of a message that hold a file, in order of preference: an animation is also sent as a document. */
const FILES = [
  ['voice', 'audio', 'voice.ogg'],
  ['audio', 'audio', 'audio.mp3'],
  ['animation', 'video', 'animation.mp4'],
  ['video', 'video', 'video.mp4'],
  ['video_note', 'video', 'video.mp4'],
  ['document', 'file', 'document'],
] as const satisfies readonly (readonly [member: string, kind: Attachment['kind'], name: string])[]

function attachmentOf(message: Members): Attachment | undefined {
  const photo = largest(message.photo)
  if (photo) return { kind: 'image', name: 'photo.jpg', mime: 'image/jpeg', source: { id: text(photo.file_id) } }
  for (const [member, kind, name] of FILES) {
    const file = members(message[member])
    const id = text(file.file_id)
    const mime = text(file.mime_type)
    if (id === '') continue
    // Pictures and recordings may be sent as documents, so their media type decides.
    const sentAs = attachmentKind(mime)
    return { kind: sentAs === 'file' ? kind : sentAs, name: text(file.file_name) || name, ...(mime && { mime }), source: { id } }
  }
  return undefined
}

/** Returns a text for a place, a contact or a sticker, and an empty text for any other message. */
function describeContent({ location, venue, contact, sticker }: Members): string {
  const place = members(venue)
  const { latitude, longitude } = members(place.location ?? location)
  if (typeof latitude === 'number' && typeof longitude === 'number') {
    const name = joined(text(place.title), text(place.address))
    return `Location: ${name ? `${name} (${latitude}, ${longitude})` : `${latitude}, ${longitude}`}`
  }
  const person = members(contact)
  const description = joined([text(person.first_name), text(person.last_name)].join(' ').trim(), text(person.phone_number))
  return description ? `Contact: ${description}` : text(members(sticker).emoji)
}

/** Returns the largest of the sizes in which a photo is available. */
function largest(sizes: unknown): Members | undefined {
  const area = ({ width, height }: Members): number => (Number(width) || 0) * (Number(height) || 0)
  return list(sizes)
    .map(members)
    .filter(({ file_id: id }) => text(id) !== '')
    .reduce<Members | undefined>((best, size) => (best && area(best) >= area(size) ? best : size), undefined)
}

const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join(', ')
