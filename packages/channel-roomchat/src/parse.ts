/** Parses a webhook event in the Activity Streams format of Nextcloud Talk or in the flat format of older bridges. */
import { type Members, members, parsedOrUndefined, parseJson, text } from '@sluice/kit/foreign-json'
import { attachmentKind } from '@sluice/kit/media-type'
import {
  type Addressed,
  type Attachment,
  type Inbound,
  location,
  namePart,
  poll,
  quotedPart,
  type Raw,
  type Thing,
  thing,
  thingsPart,
  unknownThing,
} from '@sluice/sdk/webhook'
import { idText, isRoom } from './server.ts'

/** A text, and the files and the shared object in its placeholders. */
interface RichText {
  readonly text: string
  readonly attachments: readonly Attachment[]
  readonly things: readonly Thing[]
}

interface Message extends RichText {
  /** The id of the message within its room. */
  readonly id: string
  /** The kind and the id of the author, such as `users/ada`. */
  readonly actor: string
  readonly actorName: string
}

/** One message in a room. */
interface Post extends Message {
  readonly room: string
  readonly sentAtMs?: number
  /** The message that this one answers. */
  readonly answered?: Message
}

export interface ParseOptions {
  /** The account of all messages, because events do not name the bot they were sent to. */
  readonly account: string
  /** The display name of the bot, whose messages are ignored. Empty: only messages that the server marks as a bot's are ignored. */
  readonly botName: string
}

/** The names of a `Create` event that carries a message. */
const MESSAGE_NAMES = ['message', '']
/** The names of an `Activity` event that carries a message if it has a file or an object. The name depends on the version of the server. */
const FILE_MESSAGE_NAMES = [...MESSAGE_NAMES, 'file_shared', 'object_shared']
/** A number up to this is a time in seconds (until the year 5138); a larger number is in milliseconds. */
const SECONDS_MAX = 1e11

/**
 * Returns the message in an event; an empty list for other events, and for messages of bots, without content or without a
 * sender to answer. Throws `invalid_request` for a body that is not JSON.
 */
export function parse({ body }: Pick<Raw, 'body'>, { account, botName }: ParseOptions): Inbound[] {
  const post = postOf(members(parseJson(body)))
  if (!post || isBot(post.actor) || isNamed(post, botName)) return []
  const { room, id, attachments, things, sentAtMs, answered } = post
  const text = withoutAddress(post.text, botName.trim())
  const sender = normaliseSender(post.actor)
  if (!isRoom(room) || id === '' || sender === '' || (text === '' && attachments.length === 0 && things.length === 0)) return []
  return [
    {
      // Servers number messages across rooms, but do not document it.
      id: `${room}/${id}`,
      account,
      sender,
      ...namePart(post.actorName),
      to: { to: room, replyTo: id },
      addressed: addressedAs(post, text, botName.trim()),
      text,
      ...(answered && quoteOf(answered, post, botName.trim())),
      ...(sentAtMs !== undefined && { sentAtMs }),
      ...(attachments.length > 0 && { attachments }),
      ...thingsPart(things),
    },
  ]
}

/** Returns the id of a user, which contains no slash, and the kind and id of any other actor, such as `guests/6f1b`. */
export const normaliseSender = (actor: string): string => actor.replace(/^(?:users\/|\s)+/, '').trimEnd()

const isBot = (actor: string): boolean => /^(?:bots|application)\//i.test(actor)

function isNamed({ actorName }: Message, botName: string): boolean {
  const name = botName.trim().toLowerCase()
  return name !== '' && actorName.trim().toLowerCase() === name
}

/** Events do not tell direct conversations apart. The server knows no mentions of bots, so that the name of the bot counts as one. */
function addressedAs({ text: written, answered }: Post, text: string, name: string): Addressed {
  if (text !== written || (name !== '' && written.toLowerCase().includes(`@${name.toLowerCase()}`))) return 'mention'
  return answered && isOfBot(answered, name) ? 'reply' : 'overheard'
}

/** Rooms may have several bots, which the name tells apart. */
const isOfBot = (message: Message, name: string): boolean => isBot(message.actor) && (name === '' || isNamed(message, name))

function quoteOf(quoted: Message, { room, actor }: Post, name: string): Pick<Inbound, 'quoted'> {
  const by = isOfBot(quoted, name) ? 'bot' : quoted.actor === actor ? 'sender' : undefined
  const author = { id: normaliseSender(quoted.actor), name: quoted.actorName }
  return quotedPart({ ...quoted, id: quoted.id && `${room}/${quoted.id}`, by, author })
}

/** Removes the name of the bot from the beginning of a text that addresses it, unless nothing else is in it. */
function withoutAddress(written: string, name: string): string {
  const rest = written.startsWith('@') ? written.slice(1) : written
  if (name === '' || rest.slice(0, name.length).toLowerCase() !== name.toLowerCase()) return written
  const after = rest.slice(name.length)
  return /^(?:\s|[:,]\s)/.test(after) && after.length > 2 ? after.slice(1).trim() : written
}

/** Returns undefined for reactions, joins, calls and other events that are not messages. */
const postOf = (payload: Members): Post | undefined => (payload.type === 'message' ? flatPost(payload) : activityPost(payload))

/** Reads the Activity Streams format. */
function activityPost({ type, actor, object, target }: Members): Post | undefined {
  const author = members(actor)
  const { type: kind, id, name, content, inReplyTo } = members(object)
  if (kind !== 'Note' || author.type === 'Application') return undefined
  const rich = richTextIn(text(content))
  const isFileMessage = type === 'Activity' && FILE_MESSAGE_NAMES.includes(text(name)) && rich.attachments.length + rich.things.length > 0
  const isMessage = type === 'Create' ? MESSAGE_NAMES.includes(text(name)) : isFileMessage
  if (!isMessage) return undefined
  return {
    room: text(members(target).id),
    id: idText(id),
    actor: text(author.id),
    actorName: text(author.name),
    ...rich,
    ...(inReplyTo !== undefined && { answered: answeredNote(members(inReplyTo)) }),
  }
}

function answeredNote({ actor, object }: Members): Message {
  const author = members(actor)
  const { id, content } = members(object)
  return { id: idText(id), actor: text(author.id), actorName: text(author.name), ...richTextIn(text(content)) }
}

/** Reads the content of a note, which is JSON with the text and its placeholders, or the plain text. */
function richTextIn(content: string): RichText {
  const { message, parameters } = members(parsedOrUndefined(content))
  return typeof message === 'string' ? richText(message, parameters) : { text: content.trim(), attachments: [], things: [] }
}

/** Reads the flat format, which contains the message object of the chat API. */
function flatPost({ object, message }: Members): Post | undefined {
  const { token, messageType, systemMessage, timestamp, ...rest } = members(message)
  if ((text(messageType) || 'comment') !== 'comment' || text(systemMessage) !== '') return undefined
  const parent = members(rest.parent)
  const sentAtMs = parseTimeMs(typeof timestamp === 'number' ? timestamp : Number(text(timestamp)))
  return {
    room: text(members(object).token) || text(token),
    ...flatMessage(members(message)),
    ...(sentAtMs !== undefined && { sentAtMs }),
    ...(idText(parent.id) !== '' && { answered: flatMessage(parent) }),
  }
}

const flatMessage = ({ id, actorType, actorId, actorDisplayName, messageParameters, message }: Members): Message => ({
  id: idText(id),
  actor: text(actorId) && `${text(actorType) || 'users'}/${text(actorId)}`,
  actorName: text(actorDisplayName),
  ...richText(text(message), messageParameters),
})

function parseTimeMs(timestamp: number): number | undefined {
  const ms = timestamp > SECONDS_MAX ? timestamp : timestamp * 1000
  return ms > 0 && ms <= SECONDS_MAX * 1000 ? ms : undefined
}

/** `parameters` is an object with the placeholders as keys. A server without placeholders sends an empty list. */
function richText(message: string, parameters: unknown): RichText {
  const known = members(parameters)
  const filled = message.replace(/\{([\w-]+)\}/g, (placeholder, key: string) => {
    if (!Object.hasOwn(known, key)) return placeholder
    const parameter = members(known[key])
    return isFile(parameter) || key === OBJECT ? '' : text(parameter.name) || placeholder
  })
  const attachments = Object.values(known).map(members).filter(isFile).map(attachmentOf)
  const object = members(known[OBJECT])
  const things = text(object.type) === '' || isFile(object) ? [] : [objectThing(object)]
  return { text: filled.trim(), attachments, things }
}

/** The placeholder of an object that a person shares. */
const OBJECT = 'object'

/** Describes an object by its type, as https://github.com/nextcloud/server/blob/master/lib/public/RichObjectStrings/Definitions.php has them. */
function objectThing({ type, name, latitude, longitude, boardname, stackname, link }: Members): Thing {
  if (type === 'geo-location') return location(latitude, longitude, text(name))
  if (type === 'talk-poll') return poll(text(name), [])
  if (type === 'deck-card') return thing('link', text(name), text(boardname), text(stackname), text(link))
  return unknownThing([text(type), text(name)].filter((part) => part !== '').join(', '))
}

const isFile = ({ type, id, link }: Members): boolean => type === 'file' && (text(link) || idText(id)) !== ''

function attachmentOf({ id, name, mimetype, link }: Members): Attachment {
  const mime = text(mimetype)
  const url = text(link)
  return {
    kind: attachmentKind(mime),
    name: text(name) || 'file',
    ...(mime !== '' && { mime }),
    source: url === '' ? { id: idText(id) } : { url },
  }
}
