/** Parses messages, their changes and button presses of the Discord API, and decides which of them are for the bot. */
import { attachmentKind, isPathSegment, pathSegment } from '@sluice/kit'
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import {
  type Addressed,
  type Attachment,
  CHAT_COMMANDS,
  forwardedPart,
  type Inbound,
  namePart,
  overheardPart,
  quotedPart,
  thingsPart,
} from '@sluice/sdk'
import { WORDS_OPTION } from './command-menu.ts'
import { displayName, forwardedIn, type Names, saidIn, thingsIn } from './message-text.ts'
import { isSnowflake, snowflakeMs } from './snowflake.ts'

/** The part of the configuration that decides which messages are accepted. */
export interface ListenSettings {
  readonly account: string
  /** The one server whose messages are accepted; undefined accepts every server. */
  readonly guild: string | undefined
  readonly listenToBots: boolean
  readonly mentionOnly: boolean
  /** Whether the conversation is a thread that the bot opened. Messages there need no mention. */
  isOwnThread(channel: string): boolean
}

/** The conversation of a message. */
export interface Conversation {
  readonly channel: string
  /** Empty for a direct conversation. */
  readonly guild: string
}

export interface Press {
  readonly inbound: Inbound
  /** The path of the API that acknowledges the interaction, and the body of that request. The person then sees no failure. */
  readonly callbackPath: string
  readonly answer: object
}

const DEFAULT_MESSAGE = 0
const REPLY = 19
/** The type of a `message_reference` that quotes a message. Other types forward one. */
const REFERENCE_QUOTE = 0
const COMMAND_INTERACTION = 2
const COMPONENT_INTERACTION = 3
const CHAT_INPUT = 1
/** A conversation of several people outside of servers: its type, and the context of its interactions. */
const [GROUP_DM, PRIVATE_CHANNEL] = [3, 2]
/** The types of answers: nothing changes, and a message that only the person sees. */
const [DEFERRED_UPDATE_MESSAGE, CHANNEL_MESSAGE, EPHEMERAL] = [6, 4, 64]
const BUTTON = 2

/** Returns undefined for an event without a conversation, and for a server that the configuration excludes. */
export function conversationOf({ guild }: ListenSettings, event: Members): Conversation | undefined {
  const { channel_id, guild_id } = event
  if (!isSnowflake(channel_id)) return undefined
  const found = { channel: channel_id, guild: text(guild_id) }
  return guild === undefined || found.guild === '' || found.guild === guild ? found : undefined
}

/**
 * Returns undefined for messages that are not for the bot: its own messages, messages of other bots, joins and pins, and empty
 * messages.
 */
export function parseMessage(settings: ListenSettings, names: Names, message: Members, conversation: Conversation): Inbound | undefined {
  const inbound = messageOf(settings, names, message, conversation)
  return inbound && { ...inbound, ...overheardPart(inbound, settings.mentionOnly) }
}

/**
 * Parses the edit of a message, whether or not the message was for the bot. Discord also reports a message as updated when it adds the
 * preview of a link; that is not an edit.
 */
export function parseEdit(settings: ListenSettings, names: Names, message: Members, conversation: Conversation): Inbound | undefined {
  const editedAt = text(message.edited_timestamp)
  const inbound = editedAt === '' ? undefined : messageOf(settings, names, message, conversation)
  const editedAtMs = Date.parse(editedAt)
  return (
    inbound && {
      ...inbound,
      ...overheardPart(inbound, settings.mentionOnly),
      id: `edit:${inbound.id}:${editedAt}`,
      ...(editedAtMs > 0 && { sentAtMs: editedAtMs }),
      changes: { message: inbound.id, what: 'edited' },
    }
  )
}

/** Parses the deletion of one message or of many. Discord does not tell who wrote or deleted them. */
export function parseDeletions({ account }: ListenSettings, { id, ids }: Members, { channel }: Conversation): readonly Inbound[] {
  return [id, ...list(ids)].filter(isSnowflake).map((message) => ({
    id: `delete:${message}`,
    account,
    sender: '',
    to: { to: channel },
    text: '',
    changes: { message, what: 'deleted' },
  }))
}

/** Parses a message that people wrote, whether or not it is for the bot. */
function messageOf(settings: ListenSettings, names: Names, message: Members, conversation: Conversation): Inbound | undefined {
  const { id, type } = message
  const { channel, guild } = conversation
  const author = members(message.author)
  const sender = author.id
  if (!isSnowflake(id) || !isSnowflake(sender) || (type !== DEFAULT_MESSAGE && type !== REPLY)) return undefined
  if (sender === names.botId || sender === settings.account) return undefined
  if (!settings.listenToBots && (author.bot === true || text(message.webhook_id) !== '')) return undefined
  const said = saidIn(message, guild, names)
  const attachments = parseAttachments(message.attachments)
  const things = thingsIn(message)
  const forwarded = forwardOf(message, guild, names)
  const inReplyTo = quotedMessage(message)
  const quote = quoteIn(members(message.referenced_message), { id: inReplyTo, sender, guild }, names)
  // A mention alone asks about the message that it quotes.
  if (said.text === '' && attachments.length === 0 && things.length === 0 && !forwarded.forwarded && !quote.quoted) return undefined
  return {
    id,
    account: settings.account,
    sender,
    // In a server, the member has the nickname there.
    ...namePart(displayName({ ...author, member: message.member })),
    to: { to: channel, replyTo: id },
    ...said,
    addressed: addressedAs(settings, message, conversation, names),
    sentAtMs: snowflakeMs(id),
    ...(attachments.length > 0 && { attachments }),
    ...thingsPart(things),
    ...forwarded,
    ...(inReplyTo !== undefined && { inReplyTo }),
    ...quote,
  }
}

/** The platform does not name the author of a forwarded message. */
function forwardOf(message: Members, guild: string, names: Names): Pick<Inbound, 'forwarded'> {
  const inner = forwardedIn(message)
  return forwardedPart({
    text: inner
      .map((each) => saidIn(each, guild, names).text)
      .filter((words) => words !== '')
      .join('\n\n'),
    things: inner.flatMap(thingsIn),
    attachments: inner.flatMap((each) => parseAttachments(each.attachments)),
  })
}

function quoteIn(
  quoted: Members,
  { id, sender, guild }: { readonly id: string | undefined; readonly sender: string; readonly guild: string },
  names: Names,
): Pick<Inbound, 'quoted'> {
  if (id === undefined) return {}
  const author = members(quoted.author)
  const inner = forwardedIn(quoted)
  const all = [quoted, ...inner]
  const said = all.map((each) => saidIn(each, guild, names))
  const by = author.id === names.botId ? 'bot' : author.id === sender ? 'sender' : undefined
  return quotedPart({
    id,
    // Others may have written words of a message that the bot or the sender forwarded, or that has embeds.
    by: inner.length === 0 && said.every(({ quotedFrom }) => quotedFrom === undefined) ? by : undefined,
    author: { name: displayName(author), id: text(author.id) },
    text: said
      .map((each) => each.text)
      .filter((words) => words !== '')
      .join('\n\n'),
    things: all.flatMap(thingsIn),
    attachments: all.flatMap((each) => parseAttachments(each.attachments)),
  })
}

function addressedAs({ isOwnThread }: ListenSettings, message: Members, { channel, guild }: Conversation, names: Names): Addressed {
  if (guild === '') return 'direct'
  if (members(members(message.referenced_message).author).id === names.botId) return 'reply'
  if (mentionsBot(message, guild, names)) return 'mention'
  return isOwnThread(channel) ? 'reply' : 'overheard'
}

/** Returns undefined for every interaction other than a press of a button under a message. */
export function parsePress(settings: ListenSettings, interaction: Members): Press | undefined {
  const { id, type, token } = interaction
  const { component_type, custom_id } = members(interaction.data)
  const message = members(interaction.message).id
  const sender = members(members(interaction.member).user).id ?? members(interaction.user).id
  const conversation = conversationOf(settings, interaction)
  if (type !== COMPONENT_INTERACTION || component_type !== BUTTON || !conversation) return undefined
  if (!isSnowflake(id) || !isSnowflake(message) || !isSnowflake(sender) || text(custom_id) === '' || !isPathSegment(text(token)))
    return undefined
  return {
    inbound: {
      id: `ix:${id}`,
      account: settings.account,
      sender,
      to: { to: conversation.channel, replyTo: message },
      text: '',
      sentAtMs: snowflakeMs(id),
      pressed: { message, value: text(custom_id) },
    },
    callbackPath: `/interactions/${id}/${pathSegment(text(token))}/callback`,
    answer: { type: DEFERRED_UPDATE_MESSAGE },
  }
}

/** Parses a command of Sluice from the menu, which becomes a message as its sender would write it; undefined for every other interaction. */
export function parseCommand(settings: ListenSettings, interaction: Members): Press | undefined {
  const { id, type, token, data, member, context, channel } = interaction
  const { name, type: kind = CHAT_INPUT, options } = members(data)
  const user = members(members(member).user ?? interaction.user)
  const sender = user.id
  const conversation = conversationOf(settings, interaction)
  if (type !== COMMAND_INTERACTION || kind !== CHAT_INPUT || !Object.hasOwn(CHAT_COMMANDS, text(name)) || !conversation) return undefined
  if (!isSnowflake(id) || !isSnowflake(sender) || !isPathSegment(text(token))) return undefined
  const isDirect = conversation.guild === '' && context !== PRIVATE_CHANNEL && members(channel).type !== GROUP_DM
  const words = list(options)
    .map(members)
    .filter((option) => option.name === WORDS_OPTION)
    .map(({ value }) => text(value).trim())
  const written = [`/${text(name)}`, ...words].join(' ').trim()
  return {
    inbound: {
      id: `ix:${id}`,
      account: settings.account,
      sender,
      ...namePart(displayName({ ...user, member })),
      to: { to: conversation.channel },
      text: written,
      addressed: isDirect ? 'direct' : 'command',
      sentAtMs: snowflakeMs(id),
    },
    callbackPath: `/interactions/${id}/${pathSegment(text(token))}/callback`,
    answer: { type: CHANNEL_MESSAGE, data: { content: written.slice(0, 2000), flags: EPHEMERAL, allowed_mentions: { parse: [] } } },
  }
}

/** True for a mention of the bot or of one of its roles. */
function mentionsBot(message: Members, guild: string, names: Names): boolean {
  const { botId } = names
  const content = text(message.content)
  if (content.includes(`<@${botId}>`) || content.includes(`<@!${botId}>`)) return true
  if (list(message.mentions).some((user) => members(user).id === botId)) return true
  return list(message.mention_roles).some((role) => names.isOwnRole(guild, text(role)))
}

function quotedMessage({ message_reference }: Members): string | undefined {
  const { message_id, type = REFERENCE_QUOTE } = members(message_reference)
  return type === REFERENCE_QUOTE && isSnowflake(message_id) ? message_id : undefined
}

const EXTENSIONS: readonly (readonly [Attachment['kind'], RegExp])[] = [
  ['image', /\.(?:png|jpe?g|gif|bmp|webp|heic|tiff?|svg)$/i],
  ['audio', /\.(?:flac|mp3|mpga|m4a|ogg|oga|opus|wav)$/i],
  ['video', /\.(?:mp4|mkv|avi|mov|wmv|flv|webm)$/i],
]

const parseAttachments = (data: unknown): Attachment[] =>
  list(data)
    .map(members)
    .filter(({ url }) => text(url) !== '')
    .map(({ id, url, filename, content_type }) => {
      const name = text(filename) || 'unnamed'
      const mime = text(content_type).split(';')[0]?.trim().toLowerCase()
      // Each event has the address with a new signature.
      const lasting = isSnowflake(id) && { lastingId: id }
      return { kind: kindOf(name, mime ?? ''), name, ...(mime && { mime }), source: { url: text(url) }, ...lasting }
    })

/** The file name decides only without a media type. */
function kindOf(name: string, mime: string): Attachment['kind'] {
  if (mime !== '') return attachmentKind(mime)
  return EXTENSIONS.find(([, extension]) => extension.test(name))?.[0] ?? 'file'
}
