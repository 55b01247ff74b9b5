/**
 * Parses events; see https://bot.q.qq.com/wiki/develop/api-v2/autogen/event/c2c_message_create.html, group_at_message_create.html and
 * interaction_create.html there. Both ways of receiving deliver the same events.
 */
import { list, type Members, members, text, textAt } from '@sluice/kit/foreign-json'
import { attachmentKind } from '@sluice/kit/media-type'
import {
  type Addressed,
  type Attachment,
  type Inbound,
  namePart,
  quotedPart,
  type Thing,
  thingsPart,
  unknownThing,
} from '@sluice/sdk/webhook'
import { withFaceNames } from './faces.ts'

export interface ParseOptions {
  /** The AppID of the bot. */
  readonly account: string
}

const ATTACHMENTS_MAX = 20
/** The type of a message that quotes another one. */
const QUOTES = 103
/** The names of types without text, by their numbers in the documentation of messages. */
const TYPES: Readonly<Record<number, string>> = { 2: 'markdown', 3: 'ark', 4: 'embed', 7: 'media' }

/** Returns the message or the pressed button of an event as a list of one; empty for any other event. */
export function parseEvent(type: string, data: unknown, options: ParseOptions): Inbound[] {
  const event = members(data)
  if (type === 'C2C_MESSAGE_CREATE')
    return message(
      event,
      { to: `user:${textAt(event, 'author.user_openid')}`, sender: textAt(event, 'author.user_openid'), addressed: 'direct' },
      options,
    )
  if (type === 'GROUP_AT_MESSAGE_CREATE')
    return message(
      event,
      { to: `group:${text(event.group_openid)}`, sender: textAt(event, 'author.member_openid'), addressed: 'mention' },
      options,
    )
  // A group whose bot gets all messages has this event in place of the one before.
  if (type === 'GROUP_MESSAGE_CREATE') return messageInFullMode(event, options)
  return type === 'INTERACTION_CREATE' ? press(event, options) : []
}

interface Where {
  readonly to: string
  readonly sender: string
  readonly addressed: Addressed
}

/** Returns a message without the mention of the bot. One that does not mention the bot is only overheard. */
function messageInFullMode(event: Members, options: ParseOptions): Inbound[] {
  const own = list(event.mentions)
    .map(members)
    .filter(({ is_you }) => is_you === true)
    .map((mention) => text(mention.member_openid) || text(mention.id))
    .filter((id) => id !== '')
  const to = { to: `group:${text(event.group_openid)}`, sender: textAt(event, 'author.member_openid') }
  if (own.length === 0) return message(event, { ...to, addressed: 'overheard' }, options).map((one) => ({ ...one, overheardOnly: true }))
  const content = own.reduce((words, id) => words.replaceAll(`<@${id}>`, ' ').replaceAll(`<@!${id}>`, ' '), text(event.content))
  return message({ ...event, content }, { ...to, addressed: 'mention' }, options)
}

function message(event: Members, { to, sender, addressed }: Where, { account }: ParseOptions): Inbound[] {
  const id = text(event.id)
  if (id === '' || sender === '' || to.endsWith(':') || members(event.author).bot === true) return []
  const files = list(event.attachments).slice(0, ATTACHMENTS_MAX).map(members)
  const spoken = files.map((file) => text(file.asr_refer_text).trim()).filter(Boolean)
  const words = [withFaceNames(text(event.content)).trim(), ...spoken].filter(Boolean).join('\n')
  // QQ recognises speech itself, so a recording is needed only without its words.
  const attachments = files.filter((file) => text(file.asr_refer_text).trim() === '').flatMap(attachmentOf)
  const quote = quoteIn(event)
  // A mention alone asks about the message that it quotes.
  const things = words === '' && attachments.length === 0 && !quote.quoted ? unreadableIn(event, files) : []
  if (words === '' && attachments.length === 0 && !quote.quoted && things.length === 0) return []
  const sentAtMs = timeOf(event.timestamp)
  return [
    {
      id,
      account,
      sender,
      ...namePart(textAt(event, 'author.username')),
      to: { to, replyTo: id, ...(sentAtMs !== undefined && { more: { msg: id, atMs: String(sentAtMs) } }) },
      text: words,
      addressed,
      ...quote,
      ...(attachments.length > 0 && { attachments }),
      ...thingsPart(things),
      ...(sentAtMs !== undefined && { sentAtMs }),
    },
  ]
}

/** QQ sends only the type of a card, such as that of a friend or of a program. */
function unreadableIn({ message_type: type }: Members, files: readonly Members[]): readonly Thing[] {
  if (files.length > 0) return files.map((file) => unknownThing([text(file.content_type), text(file.filename)].filter(Boolean).join(', ')))
  return typeof type === 'number' && type !== 0 && type !== QUOTES ? [unknownThing(TYPES[type] ?? String(type))] : []
}

/** QQ names no author of the quoted message. */
function quoteIn({ message_type, msg_elements }: Members): Pick<Inbound, 'quoted'> {
  if (message_type !== QUOTES) return {}
  const elements = list(msg_elements).slice(0, ATTACHMENTS_MAX).map(members)
  const words = elements.map(({ content }) => withFaceNames(text(content)).trim()).filter(Boolean)
  return quotedPart({
    id: text(elements[0]?.msg_idx),
    text: words.join('\n'),
    attachments: elements.flatMap(({ attachments }) => list(attachments).map(members).flatMap(attachmentOf)).slice(0, ATTACHMENTS_MAX),
  })
}

/** `content_type` is a media type, or the word `voice` or `file`. */
function attachmentOf({ url, voice_wav_url, filename, content_type }: Members): Attachment[] {
  const type = text(content_type).toLowerCase()
  const address = text(voice_wav_url) || text(url)
  if (address === '') return []
  const kind = type === 'voice' ? 'audio' : attachmentKind(type)
  const mime = /^\w+\/[\w.+-]+$/.test(type) ? type : undefined
  return [
    { kind, name: text(filename) || kind, ...(mime && { mime }), source: { url: address.startsWith('//') ? `https:${address}` : address } },
  ]
}

/** The id of a button names the message that has it, because the event does not. See `keyboard` in `send.ts`. */
function press(event: Members, { account }: ParseOptions): Inbound[] {
  const id = text(event.id)
  const resolved = members(members(event.data).resolved)
  const group = text(event.group_openid)
  const sender = text(event.group_member_openid) || text(event.user_openid)
  const [, button] = /^(.{1,64})\.\d{1,2}$/.exec(text(resolved.button_id)) ?? []
  const value = text(resolved.button_data)
  if (id === '' || sender === '' || button === undefined || value === '') return []
  const sentAtMs = timeOf(event.timestamp)
  return [
    {
      id,
      account,
      sender,
      to: { to: group === '' ? `user:${sender}` : `group:${group}` },
      text: '',
      pressed: { message: button, value },
      ...(sentAtMs !== undefined && { sentAtMs }),
    },
  ]
}

function timeOf(value: unknown): number | undefined {
  const atMs = typeof value === 'number' ? value * 1000 : Date.parse(text(value))
  return Number.isSafeInteger(atMs) && atMs > 0 ? atMs : undefined
}
