/** Parses events and button presses, and decides which of them are for the bot. None of these functions throws. */
import type { ReadMessage } from '@sluice/kit'
import { list, type Members, members, text, textAt, valueAt } from '@sluice/kit/foreign-json'
import { type Address, type Addressed, chatCommandIn, forwardedPart, type Inbound, overheardPart, thingsPart } from '@sluice/sdk/webhook'
import { type Content, contentOf } from './content.ts'

/** The bot for which messages are parsed. */
export interface Bot {
  /** The id of the app. */
  readonly account: string
  /** The open id of the bot; undefined if it is not known. */
  readonly openId: string | undefined
  readonly mentionOnly: boolean
  readonly threadReplies: boolean
}

/** The ids of one person: only the open id is a sender, and an allowlist may have any. */
export interface Identity {
  readonly openId: string
  readonly others: readonly string[]
}

export const RECEIVED = 'im.message.receive_v1'
export const UPDATED = 'im.message.updated_v1'
export const RECALLED = 'im.message.recalled_v1'
export const PRESSED = 'card.action.trigger'

/** The type of an event, such as `im.message.receive_v1`; empty for anything else, such as an event of the old format. */
export const eventType = (envelope: Members): string => textAt(envelope, 'header.event_type')

/** Returns the message of an event, whether or not it is for the bot. */
export const messageIn = (envelope: Members): Members =>
  [RECEIVED, UPDATED].includes(eventType(envelope)) ? members(valueAt(envelope, 'event.message')) : {}

/** Returns the ids of the person whom an event is about; undefined if it names none. */
export function identityIn(envelope: Members): Identity | undefined {
  const operator = members(valueAt(envelope, 'event.operator'))
  const ids = eventType(envelope) === PRESSED ? operator : members(valueAt(envelope, 'event.sender.sender_id'))
  const openId = text(ids.open_id)
  const others = [text(ids.union_id), text(ids.user_id)].filter((id) => id !== '')
  return openId === '' ? undefined : { openId, others }
}

/** Parses the messages of an event: at most one. */
export function parseEvent(envelope: Members, bot: Bot): readonly Inbound[] {
  const event = members(envelope.event)
  const inbound = parsed(eventType(envelope), envelope, event, bot)
  return inbound ? [inbound] : []
}

function parsed(type: string, envelope: Members, event: Members, bot: Bot): Inbound | undefined {
  if (type === RECEIVED) return parseMessage(event, bot)
  if (type === UPDATED) return editOf(envelope, event, bot)
  if (type === RECALLED) return deletionOf(event, bot)
  return type === PRESSED ? pressOf(envelope, event, bot) : undefined
}

/** Parses a message of an event, or one of a history in the form of an event. */
export function parseMessage(event: Members, bot: Bot): Inbound | undefined {
  const message = members(event.message)
  const inbound = messageOf(event, message, bot)
  return inbound && { ...inbound, ...overheardPart(inbound, bot.mentionOnly) }
}

function addressedAs(message: Members, bot: Bot): Addressed {
  if (isDirect(message)) return 'direct'
  return mentionsBot(message, bot) ? 'mention' : 'overheard'
}

/** Whether a mention in the message can be the bot's. */
export const hasMentions = (message: Members): boolean => list(message.mentions).length > 0

export const isDirect = (message: Members): boolean => message.chat_type === 'p2p'

/** Returns the time of a message in milliseconds as text; empty if it has none. */
export function timeOf(message: Members): string {
  const { create_time: time } = message
  const digits = typeof time === 'number' ? String(time) : text(time)
  return /^\d{10,15}$/.test(digits) ? digits : ''
}

/** Turns a message of a history into the form of an event. `chatType` is not part of a history. */
export function asEvent(item: Members, chatType: string): Members {
  const sender = members(item.sender)
  const mentions = list(item.mentions).map((mention) => {
    const { key, id, name } = members(mention)
    return { key, id: { open_id: id }, name }
  })
  const content = valueAt(item, 'body.content')
  const message = { ...item, message_type: item.msg_type, chat_type: chatType, content, mentions }
  return { sender: { sender_id: { open_id: sender.id }, sender_type: sender.sender_type }, message }
}

/** Returns the content of a message of anybody, as the history has it; undefined for a recalled one, and for one without content. */
export function readMessage(item: Members, bot: Pick<Bot, 'account' | 'openId'>): ReadMessage | undefined {
  const [id, sender] = [text(item.message_id), members(item.sender)]
  const content = item.deleted === true ? undefined : contentOf(text(item.msg_type), textAt(item, 'body.content'), id)
  if (!content) return undefined
  const isOfBot = sender.sender_type === 'app' && sender.id === bot.account
  const plain = withNames(content.text, members(asEvent(item, '').message), bot)
  const words = content.isForwarded && !isOfBot ? { text: '', ...forwardedPart({ text: plain }) } : { text: plain }
  return { ...words, ...thingsPart(content.things ?? []), attachments: content.attachments, author: { id: text(sender.id) }, isOfBot }
}

/** Parses a message of a person, whether or not it is for the bot. */
function messageOf(event: Members, message: Members, bot: Bot): Inbound | undefined {
  const [id, chat] = [text(message.message_id), text(message.chat_id)]
  const sender = textAt(event, 'sender.sender_id.open_id')
  if (id === '' || chat === '' || sender === '' || sender === bot.openId) return undefined
  if (textAt(event, 'sender.sender_type') !== 'user' || message.deleted === true) return undefined
  const content = contentOf(text(message.message_type), text(message.content), id)
  if (!content) return undefined
  const { attachments, things = [] } = content
  const [sentAtMs, parent] = [timeOf(message), text(message.parent_id)]
  // A mention alone asks about the message that it quotes.
  const plain = withNames(content.text, message, bot) || (parent === '' ? '' : withNames(content.text, message, { openId: undefined }))
  if (plain === '' && attachments.length === 0 && things.length === 0) return undefined
  return {
    id,
    account: bot.account,
    sender,
    to: addressOf(message, content, { opensThread: bot.threadReplies && !chatCommandIn(plain) }),
    addressed: addressedAs(message, bot),
    ...(content.isForwarded ? { text: '', ...forwardedPart({ text: plain }) } : { text: plain, ...thingsPart(things) }),
    ...(sentAtMs !== '' && { sentAtMs: Number(sentAtMs) }),
    ...(attachments.length > 0 && { attachments }),
    ...(parent !== '' && { inReplyTo: parent }),
  }
}

/**
 * A thread is named by its first message, which never changes and to which replies go; the platform gives a thread an id of its own
 * only when it begins. A command opens no thread, in which no turn would be that the command could be about. A reply to a direct message
 * quotes nothing.
 */
function addressOf(message: Members, content: Content, options: { readonly opensThread: boolean }): Address {
  const [id, root] = [text(message.message_id), text(message.root_id)]
  const isInThread = text(message.thread_id) !== ''
  const opensThread = options.opensThread && !isDirect(message)
  const thread = isInThread ? root || id : opensThread ? id : undefined
  const locale = content.locale ?? text(message.locale)
  return {
    to: text(message.chat_id),
    ...(thread !== undefined && { thread }),
    ...((thread !== undefined || !isDirect(message)) && { replyTo: id }),
    ...(locale !== '' && { more: { locale } }),
  }
}

/** Names each edit of a message by its time, which differs for each, or else by the id of the event. */
function editOf(envelope: Members, event: Members, bot: Bot): Inbound | undefined {
  const message = members(event.message)
  const inbound = parseMessage(event, bot)
  const at = textAt(message, 'update_time') || textAt(envelope, 'header.event_id')
  return inbound && at !== '' ? { ...inbound, id: `edit:${inbound.id}:${at}`, changes: { message: inbound.id, what: 'edited' } } : undefined
}

/** The event names no person: owners and administrators of a group can recall messages of others, too. */
function deletionOf(event: Members, { account }: Bot): Inbound | undefined {
  const [id, chat] = [text(event.message_id), text(event.chat_id)]
  if (id === '' || chat === '') return undefined
  return { id: `recall:${id}`, account, sender: '', to: { to: chat }, text: '', changes: { message: id, what: 'deleted' } }
}

function pressOf(envelope: Members, event: Members, { account }: Bot): Inbound | undefined {
  const sender = textAt(event, 'operator.open_id')
  const [message, chat] = [textAt(event, 'context.open_message_id'), textAt(event, 'context.open_chat_id')]
  const [value, thread] = [textAt(event, 'action.value.value'), textAt(event, 'action.value.thread')]
  const id = textAt(envelope, 'header.event_id')
  if ([sender, message, chat, value, id].includes('')) return undefined
  return {
    id: `press:${id}`,
    account,
    sender,
    to: { to: chat, ...(thread !== '' && { thread }) },
    text: '',
    pressed: { message, value },
  }
}

/** The placeholder of a mention in a text. */
const PLACEHOLDER = /@_(?:user_\d{1,6}|all)/g

/** Removes mentions of the bot, and replaces mentions of others by their names. */
function withNames(content: string, message: Members, bot: Pick<Bot, 'openId'>): string {
  const names = new Map(
    list(message.mentions).map((value) => {
      const mention = members(value)
      return [text(mention.key), openIdOf(mention) === bot.openId && bot.openId !== undefined ? '' : `@${text(mention.name)}`]
    }),
  )
  return content.replace(PLACEHOLDER, (key) => names.get(key) ?? (key === '@_all' ? '@all' : key)).trim()
}

const mentionsBot = (message: Members, { openId }: Bot): boolean =>
  openId !== undefined && list(message.mentions).some((mention) => openIdOf(members(mention)) === openId)

const openIdOf = (mention: Members): string => textAt(mention, 'id.open_id')
