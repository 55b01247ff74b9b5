/** A message somebody wrote into a room, whichever of the two payload shapes it came in. */
import { type Members, members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { idText } from './id-text.ts'
import { type RichText, richText } from './rich-text.ts'

export interface Post extends RichText {
  readonly room: string
  /** Of the message, within its room. */
  readonly id: string
  /** The kind and the id, as in `users/ada`. */
  readonly actor: string
  readonly actorName: string
  readonly sentAtMs?: number
}

const MESSAGE = ['message', '']
/** Names of what comes as an `Activity`, and is a message if it brings a file. */
const FILE_MESSAGE = [...MESSAGE, 'file_shared']
/** Seconds until the year 5138; a greater number is in milliseconds. */
const SECONDS_MAX = 1e11

/** Undefined for reactions, joins, calls and whatever else is no message. */
export const postOf = (payload: Members): Post | undefined => (payload.type === 'message' ? flat(payload) : activity(payload))

/** Activity Streams, which live servers send. */
function activity({ type, actor, object, target }: Members): Post | undefined {
  const author = members(actor)
  const { type: kind, id, name, content } = members(object)
  if (kind !== 'Note' || author.type === 'Application') return undefined
  const said = contentOf(text(content))
  const isMessage = type === 'Create' ? MESSAGE.includes(text(name)) : type === 'Activity' && isFileMessage(text(name), said)
  if (!isMessage) return undefined
  return { room: text(members(target).id), id: idText(id), actor: text(author.id), actorName: text(author.name), ...said }
}

/** Files are shared by an event of the server, whose name depends on its age. */
const isFileMessage = (name: string, { attachments }: RichText): boolean => FILE_MESSAGE.includes(name) && attachments.length > 0

/** JSON within JSON: the text and what its placeholders stand for. */
function contentOf(content: string): RichText {
  const { message, parameters } = members(parsedOrUndefined(content))
  return typeof message === 'string' ? richText(message, parameters) : { text: content.trim(), attachments: [] }
}

/** The flat shape: the message object of the chat interface. */
function flat({ object, message }: Members): Post | undefined {
  const { id, token, actorType, actorId, actorDisplayName, messageType, systemMessage, message: said, ...more } = members(message)
  if ((text(messageType) || 'comment') !== 'comment' || text(systemMessage) !== '') return undefined
  const sentAtMs = millisecondsOf(Number(more.timestamp))
  return {
    room: text(members(object).token) || text(token),
    id: idText(id),
    actor: text(actorId) && `${text(actorType) || 'users'}/${text(actorId)}`,
    actorName: text(actorDisplayName),
    ...richText(text(said), more.messageParameters),
    ...(sentAtMs !== undefined && { sentAtMs }),
  }
}

function millisecondsOf(timestamp: number): number | undefined {
  const ms = timestamp > SECONDS_MAX ? timestamp : timestamp * 1000
  return ms > 0 && ms <= SECONDS_MAX * 1000 ? ms : undefined
}
