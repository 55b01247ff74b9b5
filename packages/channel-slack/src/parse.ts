/**
 * Parses messages, their changes, button presses and files of Slack's events, and decides which of them are for the bot. None of these
 * functions throws.
 */
import { attachmentKind } from '@sluice/kit'
import { list, type Members, members, text, textAt } from '@sluice/kit/foreign-json'
import {
  type Addressed,
  type Attachment,
  CHAT_COMMANDS,
  chatCommandIn,
  forwardedPart,
  type Inbound,
  overheardPart,
  type Thing,
  thing,
  thingsPart,
  unknownThing,
} from '@sluice/sdk'
import { attachmentWords } from './attachment-words.ts'
import { blocksText, unknownBlocks } from './blocks-text.ts'
import type { SlackConfig } from './config.ts'
import { mentions, plainText } from './plain-text.ts'
import { isTimestamp, timestampMs } from './timestamp.ts'

/** The bot for which messages are parsed. */
export interface Bot {
  readonly account: string
  /** The user id of the bot. */
  readonly userId: string
  readonly config: SlackConfig
}

const EVENT_TYPES = ['message', 'app_mention']
const SUBTYPES = ['', 'file_share', 'thread_broadcast', 'me_message']
/** More buttons than fit under one message. */
const ACTIONS_MAX = 25
/** More files than Slack allows in one message. */
const FILES_MAX = 20
const SHARES_MAX = 20
/** Files that were deleted, or that the workspace's plan no longer shows. */
const UNAVAILABLE_MODES = ['tombstone', 'hidden_by_limit']

/**
 * Parses an event or a message of a conversation's history. Returns undefined for everything that is not a message of a person in a
 * conversation of the bot.
 */
export function parseMessage(event: Members, bot: Bot): Inbound | undefined {
  const message = messageOf(event, bot)
  if (!message || !isAccepted(event, bot)) return undefined
  const [written, thread] = [message.text.trim(), text(event.thread_ts)]
  // As from the menu: a thread of its own would have no turn that the command could be about.
  const isAboutChannel = (thread === '' || thread === event.ts) && chatCommandIn(written) !== undefined
  return { ...message, ...(isAboutChannel && { to: { to: message.to.to } }), ...overheardPart(message, bot.config.mention_only) }
}

/**
 * Parses the edit or the deletion of a message, whether or not the message was for the bot. Slack also reports a change when it adds
 * the preview of a link; that is not a change here.
 */
export function parseChange(event: Members, bot: Bot): Inbound | undefined {
  const channel = text(event.channel)
  const before = members(event.previous_message)
  if (text(event.type) !== 'message') return undefined
  if (text(event.subtype) === 'message_changed') {
    const message = members(event.message)
    const isSame = message.text === before.text && fileIds(message) === fileIds(before)
    return isSame ? undefined : parseEdit(message, channel, bot)
  }
  const deleted = text(event.deleted_ts)
  if (text(event.subtype) !== 'message_deleted' || channel === '' || !isTimestamp(deleted) || before.user === bot.userId) return undefined
  return {
    id: `delete:${channel}:${deleted}`,
    account: bot.account,
    sender: text(before.user),
    to: replyAddress(channel, deleted, text(before.thread_ts), bot.config),
    text: '',
    changes: { message: `${channel}:${deleted}`, what: 'deleted' },
  }
}

/** Parses the newest edit of a message, as an event or a history shows it; undefined for a message that was not edited. */
export function parseEdit(message: Members, channel: string, bot: Bot): Inbound | undefined {
  const { mention_only, notification_channel_id } = bot.config
  const editedAt = textAt(message, 'edited.ts')
  if (editedAt === '' || !(isConfigured(channel, bot.config) || channel === notification_channel_id)) return undefined
  const inbound = messageOf({ ...message, type: 'message', channel }, bot)
  return (
    inbound && {
      ...inbound,
      ...overheardPart(inbound, mention_only),
      id: `edit:${inbound.id}:${editedAt}`,
      ...(isTimestamp(editedAt) && { sentAtMs: timestampMs(editedAt) }),
      changes: { message: inbound.id, what: 'edited' },
    }
  )
}

/** Parses a message that people wrote, whether or not it is for the bot. */
function messageOf(event: Members, bot: Bot): Inbound | undefined {
  const [channel, sender, id] = [text(event.channel), text(event.user), text(event.ts)]
  if (!EVENT_TYPES.includes(text(event.type)) || !SUBTYPES.includes(text(event.subtype))) return undefined
  if (channel === '' || sender === '' || !isTimestamp(id)) return undefined
  if (sender === bot.userId || text(event.bot_id) !== '') return undefined
  const content = readMessage(event, bot)
  if (content.text === '' && !content.attachments && !content.things && !content.forwarded) return undefined
  return {
    id: `${channel}:${id}`,
    account: bot.account,
    sender,
    to: replyAddress(channel, id, text(event.thread_ts), bot.config),
    addressed: addressedAs(event, channel, bot),
    sentAtMs: timestampMs(id),
    ...content,
  }
}

/** Reads the words, files and forwards of a message of any author. */
export function readMessage(event: Members, bot: Bot): Pick<Inbound, 'text' | 'attachments' | 'things' | 'forwarded'> {
  const attachments = attachmentsOf(event)
  const written = text(event.text) || blocksText(event.blocks)
  const isReply = text(event.thread_ts) !== '' && event.thread_ts !== event.ts
  // A mention alone asks about the thread that it is in.
  const plain = plainText(written, bot.userId) || (isReply ? plainText(written, '') : '')
  const shared = list(event.attachments).slice(0, SHARES_MAX).map(members)
  const forwarded = forwardOf(shared.filter(isShare), bot)
  const others = shared.filter((each) => !isShare(each))
  const isOfProgram = text(event.bot_id) !== ''
  const links = others.filter((each) => !isOfProgram || isPreview(each)).flatMap((each) => linkIn(each, bot))
  const own = others.filter((each) => isOfProgram && !isPreview(each))
  const words = [plain, ...own.map((each) => plainText(attachmentWords(each), bot.userId))]
  const said = words.filter((part) => part !== '').join('\n')
  const isEmpty = said === '' && attachments.length === 0 && links.length === 0 && !forwarded.forwarded
  const things = isEmpty ? unknownBlocks(event.blocks).map(unknownThing) : links
  return { text: said, ...(attachments.length > 0 && { attachments }), ...thingsPart(things), ...forwarded }
}

/** True for a message of another conversation that the sender passes on, with its files. */
const isShare = ({ is_share, is_msg_unfurl }: Members): boolean => is_share === true || is_msg_unfurl === true

/** The preview of a page that a message links to. A program's message also has attachments that the program wrote. */
const isPreview = ({ from_url, is_app_unfurl }: Members): boolean => text(from_url) !== '' || is_app_unfurl === true

function forwardOf(shares: readonly Members[], { userId }: Bot): Pick<Inbound, 'forwarded'> {
  const [first = {}] = shares
  const words = shares.map((share) => plainText(attachmentWords(share), userId))
  return forwardedPart({
    author: { name: text(first.author_name) || text(first.author_subname), id: text(first.author_id) },
    text: words.filter((each) => each !== '').join('\n\n'),
    attachments: shares.flatMap(attachmentsOf).slice(0, FILES_MAX),
  })
}

/** The preview of a page that the message links to. */
function linkIn(share: Members, { userId }: Bot): readonly Thing[] {
  const words = plainText(attachmentWords({ ...share, title: '' }), userId)
  const found = thing('link', text(share.title), words === text(share.title) ? '' : words, textAt(share, 'title_link', 'from_url'))
  return found.text === '' ? [] : [found]
}

function addressedAs(event: Members, channel: string, { userId }: Bot): Addressed {
  if (isDirect(channel)) return 'direct'
  if (mentions(text(event.text) || blocksText(event.blocks), userId)) return 'mention'
  return text(event.parent_user_id) === userId ? 'reply' : 'overheard'
}

/**
 * Returns one message per pressed button, and none for every other interaction. The gateway checks whether the sender may
 * press it.
 */
export function parsePresses(payload: Members, { account, config }: Bot): readonly Inbound[] {
  if (text(payload.type) !== 'block_actions') return []
  const sender = textAt(payload, 'user.id')
  const channel = textAt(payload, 'container.channel_id', 'channel.id')
  const message = textAt(payload, 'container.message_ts', 'message.ts')
  if (sender === '' || channel === '' || !isTimestamp(message)) return []
  const to = replyAddress(channel, message, textAt(payload, 'container.thread_ts', 'message.thread_ts'), config)
  return list(payload.actions)
    .slice(0, ACTIONS_MAX)
    .flatMap((each) => {
      const action = members(each)
      const [at, value] = [text(action.action_ts), text(action.value)]
      if (at === '' || text(action.type) !== 'button' || value === '') return []
      return [{ id: `act:${at}:${sender}:${channel}`, account, sender, to, text: '', pressed: { message, value } }]
    })
}

/**
 * Parses a slash command: the words after the command of the app are one of Sluice, as in `/sluice stop`, and any other words ask for
 * help. Source: https://docs.slack.dev/interactivity/implementing-slash-commands
 */
export function parseCommand(payload: Members, { account, config }: Bot): Inbound | undefined {
  const [sender, channel, trigger] = [text(payload.user_id), text(payload.channel_id), text(payload.trigger_id)]
  const name = text(payload.command).replace(/^\//, '')
  if (name === '' || sender === '' || channel === '' || trigger === '' || !isConfigured(channel, config)) return undefined
  const words = text(payload.text).trim()
  const written = Object.hasOwn(CHAT_COMMANDS, name) ? `/${name} ${words}`.trim() : `/${words.replace(/^\//, '')}`
  const addressed = isDirect(channel) ? 'direct' : 'command'
  return { id: `cmd:${trigger}`, account, sender, to: { to: channel }, addressed, text: chatCommandIn(written) ? written : '/help' }
}

const isConfigured = (channel: string, { channel_ids }: SlackConfig): boolean =>
  channel_ids.length === 0 || channel_ids.includes('*') || channel_ids.includes(channel)

const isDirect = (channel: string): boolean => channel.startsWith('D')

/** Returns where the reply to a message goes. The first message of a thread has its own id as `thread`. */
function replyAddress(channel: string, message: string, thread: string, { thread_replies }: SlackConfig): Inbound['to'] {
  if (isTimestamp(thread) && thread !== message) return { to: channel, thread }
  return thread_replies && !isDirect(channel) ? { to: channel, thread: message } : { to: channel }
}

function isAccepted(event: Members, { userId, config }: Bot): boolean {
  const channel = text(event.channel)
  // Approval prompts must be answerable in the conversation that receives them.
  return isConfigured(channel, config) || (channel === config.notification_channel_id && text(event.parent_user_id) === userId)
}

/** A file that was deleted stays in its message, without its contents. */
const fileIds = ({ files }: Members): string =>
  list(files)
    .map(members)
    .filter(({ mode }) => !UNAVAILABLE_MODES.includes(text(mode)))
    .map(({ id }) => text(id))
    .join()

const attachmentsOf = (message: Members): readonly Attachment[] => list(message.files).slice(0, FILES_MAX).flatMap(attachmentOf)

function attachmentOf(value: unknown): Attachment[] {
  const file = members(value)
  const id = text(file.id)
  if (id === '' || UNAVAILABLE_MODES.includes(text(file.mode))) return []
  const mime = text(file.mimetype)
  const url = textAt(file, 'url_private_download', 'url_private')
  // The event of a file that was shared from another workspace contains only its id.
  const source = url === '' ? { id } : { url }
  return [{ kind: attachmentKind(mime), name: textAt(file, 'name', 'title') || id, ...(mime !== '' && { mime }), source, lastingId: id }]
}
