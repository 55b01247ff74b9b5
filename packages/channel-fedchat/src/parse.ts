/** From an event of a room to a message (client-server API, "Instant messaging"). Encrypted events are decrypted before. */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import {
  type Addressed,
  type Attachment,
  type Inbound,
  location,
  namePart,
  overheardPart,
  poll,
  quotedPart,
  type Thing,
  thing,
  thingsPart,
  unknownThing,
} from '@sluice/sdk'
import { folded } from './config.ts'
import { attachmentId } from './media.ts'

export interface Bot {
  readonly account: string
  readonly userId: string
  /** The display name of the bot; empty without one. */
  readonly name: string
  readonly mentionOnly: boolean
  /** True if every message in the room is for the bot. */
  isDirect(room: string): boolean
  /** Returns the display name of a user in a room; empty without one. */
  nameOf?(room: string, user: string): string
  /** Returns the value of the button that a reaction with this key to this message presses. */
  pressed(message: string, key: string): string | undefined
}

const KINDS: ReadonlyMap<string, Attachment['kind']> = new Map([
  ['m.image', 'image'],
  ['m.audio', 'audio'],
  ['m.video', 'video'],
  ['m.file', 'file'],
])
const TEXTS: ReadonlySet<string> = new Set(['m.text', 'm.emote'])
/** Bots write notices, and no bot answers one. Clients write requests to verify a device. */
const IGNORED: ReadonlySet<string> = new Set(['m.notice', 'm.key.verification.request', ''])
/** Messages of a type of their own, with their names before the specification had them. */
const POLLS: ReadonlySet<string> = new Set(['m.poll.start', 'org.matrix.msc3381.poll.start'])

/** The first event of a call, the ring of a call of several people (MSC4075), and the begin of a live location, with their names before they were specified. */
const CALLS: ReadonlySet<string> = new Set([
  'm.call.invite',
  'm.call.notify',
  'm.rtc.notification',
  'org.matrix.msc4075.call.notify',
  'org.matrix.msc4075.rtc.notification',
])
const LIVE_LOCATIONS: ReadonlySet<string> = new Set(['m.beacon_info', 'org.matrix.msc3672.beacon_info'])

/** Returns undefined for the bot's own events and for every event that is no message. */
export function parse(event: Members, room: string, bot: Bot): Inbound | undefined {
  const id = text(event.event_id)
  const sender = text(event.sender)
  const content = members(event.content)
  if (id === '' || sender === '' || folded(sender) === folded(bot.userId)) return undefined
  if (members(event.unsigned).redacted_because !== undefined) return undefined
  const { origin_server_ts: ts } = event
  const common = {
    id,
    account: bot.account,
    sender: folded(sender),
    ...namePart(bot.nameOf?.(room, sender) ?? ''),
    ...(Number.isSafeInteger(ts) && { sentAtMs: Number(ts) }),
  }
  switch (event.type) {
    case 'm.room.message':
      return parseMessage(content, { ...common, to: { to: room, replyTo: id, more: { sender } } }, room, bot)
    case 'm.sticker':
      return parseMessage({ ...content, msgtype: 'm.sticker' }, { ...common, to: { to: room, replyTo: id, more: { sender } } }, room, bot)
    case 'm.room.redaction':
      return parseRedaction(text(event.redacts) || text(content.redacts), common, room)
    case 'm.reaction':
      return parseReaction(members(content['m.relates_to']), common, room, bot)
    default:
      return parseOther(text(event.type), content, { ...common, to: { to: room, replyTo: id, more: { sender } } }, room, bot)
  }
}

/** Returns undefined for an event of a type that no person sends as a message. */
function parseOther(type: string, content: Members, common: Common & Pick<Inbound, 'to'>, room: string, bot: Bot): Inbound | undefined {
  if (POLLS.has(type)) return parsePoll(content, common, room, bot)
  const one = thingOf(type, content, bot)
  if (!one) return undefined
  const addressed = addressedAs(content, room, bot)
  return { ...common, text: '', addressed, ...overheardPart({ addressed }, bot.mentionOnly), ...thingsPart([one]) }
}

/** Describes a call, which this channel does not take, and a live location, whose many positions do not arrive. */
function thingOf(type: string, content: Members, bot: Bot): Thing | undefined {
  const invitee = text(content.invitee)
  if (CALLS.has(type)) return invitee === '' || folded(invitee) === folded(bot.userId) ? thing('call') : undefined
  if (!LIVE_LOCATIONS.has(type) || content.live !== true) return undefined
  return thing('location', 'shared live', text(content.description))
}

function parsePoll(content: Members, common: Common & Pick<Inbound, 'to'>, room: string, bot: Bot): Inbound | undefined {
  const relation = members(content['m.relates_to'])
  const replaced = relation.rel_type === 'm.replace' ? text(relation.event_id) : ''
  const edited = members(content['m.new_content'])
  if (replaced !== '' && Object.keys(edited).length === 0) return undefined
  if (replaced !== '' && edited['m.relates_to'] === undefined) {
    const edit = parsePoll(edited, common, room, bot)
    return edit && { ...edit, changes: { message: replaced, what: 'edited' } }
  }
  const thread = relation.rel_type === 'm.thread' ? text(relation.event_id) : ''
  const { question, answers } = members(content['m.poll'] ?? content['org.matrix.msc3381.poll.start'] ?? content['m.poll.start'])
  const words = (value: unknown): string => {
    const part = members(value)
    return text(part['org.matrix.msc1767.text']) || text(part.body) || text(members(list(part['m.text'])[0]).body)
  }
  const addressed = addressedAs(content, room, bot)
  return {
    ...common,
    to: { ...common.to, ...(thread !== '' && { thread }) },
    text: '',
    addressed,
    ...overheardPart({ addressed }, bot.mentionOnly),
    ...thingsPart([poll(words(question), list(answers).map(words))]),
  }
}

type Common = Pick<Inbound, 'id' | 'account' | 'sender' | 'name' | 'sentAtMs'>

function parseMessage(content: Members, common: Common & Pick<Inbound, 'to'>, room: string, bot: Bot): Inbound | undefined {
  const relation = members(content['m.relates_to'])
  if (relation.rel_type === 'm.replace') return parseEdit(members(content['m.new_content']), text(relation.event_id), common, room, bot)
  const parts = partsOf(content, bot)
  const addressed = addressedAs(content, room, bot)
  if (!parts) return undefined
  const thread = relation.rel_type === 'm.thread' ? text(relation.event_id) : ''
  // In a thread, clients that do not know threads get a reply to the last message of it.
  const quoted = relation.is_falling_back === true && thread !== '' ? '' : text(members(relation['m.in_reply_to']).event_id)
  return {
    ...common,
    to: { ...common.to, ...(thread !== '' && { thread }) },
    addressed,
    ...overheardPart({ addressed }, bot.mentionOnly),
    ...parts,
    ...(quoted !== '' && { inReplyTo: quoted, ...fallbackQuote(content, { id: quoted, sender: common.sender, bot }) }),
  }
}

/** An edit need not mention the bot: the daemon drops changes of unknown messages. */
function parseEdit(content: Members, message: string, common: Common & Pick<Inbound, 'to'>, room: string, bot: Bot): Inbound | undefined {
  const parts = partsOf(content, bot)
  if (!parts || message === '') return undefined
  const addressed = addressedAs(content, room, bot)
  return {
    ...common,
    to: { to: room, replyTo: message, more: common.to.more ?? {} },
    addressed,
    ...overheardPart({ addressed }, bot.mentionOnly),
    ...parts,
    changes: { message, what: 'edited' },
  }
}

/** The homeserver allows a redaction only to the sender of the message and to moderators. */
function parseRedaction(message: string, common: Common, room: string): Inbound | undefined {
  return message === '' ? undefined : { ...common, to: { to: room }, text: '', changes: { message, what: 'deleted' } }
}

function parseReaction(relation: Members, common: Common, room: string, bot: Bot): Inbound | undefined {
  const message = text(relation.event_id)
  const value = relation.rel_type === 'm.annotation' ? bot.pressed(message, text(relation.key)) : undefined
  return value === undefined ? undefined : { ...common, to: { to: room, replyTo: message }, text: '', pressed: { message, value } }
}

/** Returns the text and the attachment of a message; undefined for a notice, which may be of another bot, and for unknown types. */
function partsOf(content: Members, bot: Bot): Pick<Inbound, 'text' | 'attachments' | 'things'> | undefined {
  const type = text(content.msgtype)
  const kind = KINDS.get(type)
  if (kind) {
    const id = attachmentId(content)
    const name = text(content.filename) || text(content.body) || kind
    // Without a file name, the body is the name; with another one, it is a caption.
    const caption = text(content.filename) !== '' && content.filename !== content.body ? text(content.body) : ''
    if (id === undefined)
      return { text: spoken(caption, content, bot), ...thingsPart([thing('unknown', `${type} that cannot be read`, name)]) }
    const mime = text(members(content.info).mimetype)
    return { text: spoken(caption, content, bot), attachments: [{ kind, name, ...(mime !== '' && { mime }), source: { id } }] }
  }
  if (IGNORED.has(type)) return undefined
  if (GALLERIES.has(type)) return galleryIn(content, bot)
  const body = spoken(text(content.body), content, bot)
  if (type === 'm.location') {
    const [, latitude = '', longitude = ''] = /^geo:(-?[\d.]{1,30}),(-?[\d.]{1,30})/.exec(text(content.geo_uri)) ?? []
    return { text: '', ...thingsPart([location(latitude, longitude, body)]) }
  }
  if (type === 'm.sticker') return { text: '', ...thingsPart([thing('sticker', body)]) }
  // A type of a later version of the specification has its words in the body, too.
  if (!TEXTS.has(type)) return { text: body, ...thingsPart([unknownThing(type)]) }
  if (body === '') return undefined
  return { text: type === 'm.emote' ? `* ${body}` : body }
}

/** Several files in one message (MSC4274); its body is their caption. */
const GALLERIES: ReadonlySet<string> = new Set(['m.gallery', 'dm.filament.gallery'])
const GALLERY_FILES_MAX = 20

function galleryIn(content: Members, bot: Bot): Pick<Inbound, 'text' | 'attachments' | 'things'> {
  const all = list(content.itemtypes ?? content['dm.filament.itemtypes']).map(members)
  const items = all.slice(0, GALLERY_FILES_MAX).map((item) => partsOf({ ...item, msgtype: itemType(item) }, bot))
  const attachments = items.flatMap((item) => item?.attachments ?? [])
  const words = [spoken(text(content.body), content, bot), ...items.map((item) => item?.text ?? '')].filter((part) => part !== '')
  const more = all.length - items.length
  const unread = [...items.flatMap((item) => item?.things ?? []), ...(more > 0 ? [unknownThing(`${more} more files of a gallery`)] : [])]
  const things = attachments.length === 0 && unread.length === 0 ? [unknownThing('gallery')] : unread
  return { text: words.join('\n'), ...(attachments.length > 0 && { attachments }), ...thingsPart(things) }
}

function itemType({ itemtype }: Members): string {
  const type = text(itemtype)
  return type === '' || GALLERIES.has(type) ? 'item of a gallery' : type
}

const FALLBACK = /^(?:>.*(?:\n|$))+\n?/

/** Returns the copy of the quoted message that clients before version 1.13 of the specification put before the text. */
function fallbackQuote(
  content: Members,
  { id, sender, bot }: { readonly id: string; readonly sender: string; readonly bot: Bot },
): Pick<Inbound, 'quoted'> {
  const body = text(content.body)
  const [copy = ''] = body.startsWith('> ') ? (FALLBACK.exec(body) ?? []) : []
  const words = copy.replace(/^> ?/gm, '').trim()
  const [, user = '', said = ''] = /^(?:\* )?<(@[^<>\s]{1,254})>\s?([\s\S]*)$/.exec(words) ?? []
  const by = folded(user) === folded(bot.userId) ? 'bot' : folded(user) === sender ? 'sender' : undefined
  return user === '' ? {} : quotedPart({ id, by, author: { id: folded(user) }, text: said })
}

/** Returns what the sender wrote, without the copy of the quoted message and without the mention of the bot at the beginning. */
function spoken(body: string, content: Members, bot: Bot): string {
  const isReply = members(members(content['m.relates_to'])['m.in_reply_to']).event_id !== undefined
  const own = isReply && /^> (?:\* )?</.test(body) ? body.replace(FALLBACK, '') : body
  const trimmed = own.trim()
  const mention = namesOf(bot).find((name) => startsWithName(trimmed, name))
  if (mention === undefined) return trimmed
  const rest = trimmed
    .slice(trimmed.startsWith('@') && !mention.startsWith('@') ? mention.length + 1 : mention.length)
    .replace(/^[\s:,]+/, '')
  // A mention alone asks about the message that it quotes.
  return rest === '' && isReply ? trimmed : rest
}

/** The names of the bot, longest first. */
const namesOf = ({ userId, name }: Bot): readonly string[] =>
  [userId, name, userId.slice(1).split(':')[0] ?? ''].filter((each) => each.length > 1).sort((a, b) => b.length - a.length)

function startsWithName(body: string, name: string): boolean {
  const start = body.startsWith('@') && !name.startsWith('@') ? 1 : 0
  const said = body.slice(start, start + name.length)
  if (said.toLowerCase() !== name.toLowerCase()) return false
  const next = body[start + name.length]
  // A name without a sign before or after it may be the beginning of a sentence.
  return next === undefined || next === ':' || next === ',' || ((start === 1 || name.startsWith('@')) && /\s/.test(next))
}

function addressedAs(content: Members, room: string, bot: Bot): Addressed {
  if (bot.isDirect(room)) return 'direct'
  return mentionsBot(content, bot) ? 'mention' : 'overheard'
}

function mentionsBot(content: Members, bot: Bot): boolean {
  const { user_ids: mentioned } = members(content['m.mentions'])
  if (Array.isArray(mentioned)) return mentioned.some((user) => typeof user === 'string' && folded(user) === folded(bot.userId))
  // Clients before version 1.7 of the specification name the bot in the text only.
  const body = `${text(content.body)} ${text(content.formatted_body)}`.toLowerCase()
  return namesOf(bot).some((name) => hasWord(body, name.toLowerCase()))
}

function hasWord(body: string, word: string): boolean {
  const isPart = (char: string | undefined): boolean => char !== undefined && /[\p{L}\p{N}_-]/u.test(char)
  for (let at = body.indexOf(word); at >= 0; at = body.indexOf(word, at + 1)) {
    if (!isPart(body[at - 1]) && !isPart(body[at + word.length])) return true
  }
  return false
}
