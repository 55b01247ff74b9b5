/** Parses an update of the Bot API: a message, the edit of a message, or the press of a button. */
import { attachmentKind, vcardWords } from '@sluice/kit'
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import {
  type Attachment,
  forwardedPart,
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
import { type Albums, albumOf } from './albums.ts'
import { addressedText, type Bot, isForOtherBot, markedWords, repliedTo, wordsOf } from './mention.ts'
import { blocksIn, thingsOfBlocks } from './rich-message.ts'

export interface Parsed {
  /** Undefined if the update contains no message for the bot. `query` must be answered nevertheless. */
  readonly inbound?: Inbound
  /** The sender's current user name; empty without one. */
  readonly username: string
  /** The id of a press. Its button shows a progress indicator until the query is answered. */
  readonly query?: string
}

/**
 * Returns undefined for an update without a message for the bot: messages of bots, of the service and on behalf of a chat. With
 * `mentionOnly`, a message in a group that is not addressed to the bot, nor a member of an album that is, is only overheard. The value of a
 * press comes from the sender's client and need not be the value of any button.
 */
export function parseUpdate(update: unknown, bot: Bot, mentionOnly: boolean, albums?: Pick<Albums, 'addressed'>): Parsed | undefined {
  const { update_id: id, message, edited_message: edited, callback_query: query } = members(update)
  if (message !== undefined) return parseMessage(members(message), bot, mentionOnly, albums)
  if (edited !== undefined) return parseEdit(members(edited), bot, mentionOnly, `edit:${idText(id)}`)
  return query === undefined ? undefined : parsePress(members(query), bot)
}

function parseMessage(message: Members, bot: Bot, mentionOnly: boolean, albums?: Pick<Albums, 'addressed'>): Parsed | undefined {
  const chat = idText(members(message.chat).id)
  const number = idText(message.message_id)
  const from = members(message.from)
  const sender = idText(from.id)
  // A message on behalf of a chat carries the id of a bot or of the service as its sender.
  if (chat === '' || number === '' || sender === '' || from.is_bot === true || message.sender_chat !== undefined) return undefined
  const spoken = addressedText(message, bot)
  const isGroup = ['group', 'supergroup'].includes(text(members(message.chat).type))
  const inAlbum = spoken.addressed === 'overheard' ? albums?.addressed(albumOf(message)) : undefined
  const isForOther = isGroup && isForOtherBot(message, bot)
  const inGroup = isForOther ? 'overheard' : (inAlbum ?? spoken.addressed)
  const addressed = isGroup ? inGroup : 'direct'
  // A command of a group that is sent on, or typed by hand, names the bot in a private chat, too.
  const written = isGroup || spoken.addressed === 'command' ? spoken.text : wordsOf(message)
  const attachments = attachmentsOf(message)
  const things = thingsIn(message)
  if (written.trim() === '' && things.length === 0 && attachments.length === 0) return undefined
  const content = { text: written.trim() === '' ? '' : written, ...(attachments.length > 0 && { attachments }), ...thingsPart(things) }
  const quoted = idText(repliedTo(message).message_id)
  const inReplyTo = quoted === '' ? '' : messageId(chat, quoted)
  return {
    username: text(from.username),
    inbound: {
      id: messageId(chat, number),
      account: bot.id,
      sender,
      ...namePart(authorOf(from, text(from.username)).name),
      to: { to: chat, ...threadOf(message), replyTo: number },
      addressed,
      ...overheardPart({ addressed }, mentionOnly || isForOther),
      ...(isOfOther(message, bot) ? forwardOf(message, content) : content),
      ...(typeof message.date === 'number' && message.date > 0 && { sentAtMs: message.date * 1000 }),
      ...(inReplyTo !== '' && { inReplyTo }),
      ...(text(message.media_group_id) !== '' && { group: { id: text(message.media_group_id) } }),
      ...quoteIn(message, { id: inReplyTo, sender, bot }),
    },
  }
}

/**
 * Returns undefined for a new position of a person who shares a live location. An edit need not mention the bot: it counts if its message
 * did.
 */
function parseEdit(message: Members, bot: Bot, mentionOnly: boolean, id: string): Parsed | undefined {
  if (message.location !== undefined) return undefined
  const parsed = parseMessage(message, bot, mentionOnly)
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
  ['voice_note', 'audio', 'voice.ogg'],
  ['audio', 'audio', 'audio.mp3'],
  ['animation', 'video', 'animation.mp4'],
  ['video', 'video', 'video.mp4'],
  ['video_note', 'video', 'video.mp4'],
  ['document', 'file', 'document'],
] as const satisfies readonly (readonly [member: string, kind: Attachment['kind'], name: string])[]

const FILES_MAX = 50

function attachmentOf(message: Members): Attachment | undefined {
  const photo = largest(message.photo)
  if (photo) return { kind: 'image', name: 'photo.jpg', mime: 'image/jpeg', ...fileOf(photo) }
  for (const [member, kind, name] of FILES) {
    const file = members(message[member])
    const mime = text(file.mime_type)
    if (text(file.file_id) === '') continue
    // Pictures and recordings may be sent as documents, so their media type decides.
    const sentAs = attachmentKind(mime)
    return { kind: sentAs === 'file' ? kind : sentAs, name: text(file.file_name) || name, ...(mime && { mime }), ...fileOf(file) }
  }
  return undefined
}

/** Returns the files of a message, and those in the blocks of a rich one. */
const attachmentsOf = (message: Members): readonly Attachment[] =>
  [message, ...blocksIn(message.rich_message)].flatMap((each) => attachmentOf(each) ?? []).slice(0, FILES_MAX)

/** Only `file_id` opens a file, and only `file_unique_id` is the same in each update. */
function fileOf({ file_id, file_unique_id }: Members): Pick<Attachment, 'source' | 'lastingId'> {
  const lastingId = text(file_unique_id)
  return { source: { id: text(file_id) }, ...(lastingId && { lastingId }) }
}

type Content = Pick<Inbound, 'text' | 'attachments' | 'things'>

/** Whether other people, or another bot that the sender picked a text of, wrote the message. */
const isOfOther = ({ forward_origin, via_bot }: Members, bot: Bot): boolean =>
  forward_origin !== undefined || (via_bot !== undefined && idText(members(via_bot).id) !== bot.id)

/** The words and files of a forwarded message, and of a message by way of a bot, are not the sender's own. */
function forwardOf({ forward_origin, via_bot }: Members, content: Content): Pick<Inbound, 'text' | 'forwarded'> {
  if (forward_origin === undefined) {
    const author = authorOf(members(via_bot), text(members(via_bot).username))
    return { text: '', ...forwardedPart({ ...content, author }) }
  }
  const { sender_user, sender_chat, chat, sender_user_name } = members(forward_origin)
  const room = members(sender_chat ?? chat)
  const isRoom = idText(room.id) !== ''
  const author = isRoom ? { name: text(room.title), id: idText(room.id) } : authorOf(members(sender_user), text(sender_user_name))
  return { text: '', ...forwardedPart({ ...content, author, kind: isRoom ? 'room' : 'person' }) }
}

const authorOf = ({ id, first_name, last_name }: Members, otherwise = ''): { readonly name: string; readonly id: string } => ({
  name: [text(first_name), text(last_name)].join(' ').trim() || otherwise,
  id: idText(id),
})

/** Returns the quoted message, also one of another chat, or the part of it that the sender marked. */
function quoteIn(
  message: Members,
  { id, sender, bot }: { readonly id: string; readonly sender: string; readonly bot: Bot },
): Pick<Inbound, 'quoted'> {
  if (message.reply_to_story !== undefined) return storyIn(members(members(message.reply_to_story).chat))
  const external = members(message.external_reply)
  const shown = message.external_reply === undefined ? repliedTo(message) : external
  if (message.quote === undefined && Object.keys(shown).length === 0) return {}
  const origin = members(external.origin)
  const room = members(shown.sender_chat ?? origin.sender_chat ?? origin.chat)
  const isByWay = isOfOther(shown, bot) && shown.forward_origin === undefined
  const writer = members(isByWay ? shown.via_bot : (origin.sender_user ?? shown.from))
  const isRoom = idText(room.id) !== ''
  const writerId = isRoom ? '' : idText(writer.id)
  const by = writerId === '' ? undefined : writerId === bot.id ? 'bot' : writerId === sender ? 'sender' : undefined
  return quotedPart({
    id,
    by: isOfOther(shown, bot) ? undefined : by,
    author: isRoom ? { name: text(room.title), id: idText(room.id) } : authorOf(writer, text(origin.sender_user_name)),
    text: markedWords(members(message.quote)) || wordsOf(shown),
    things: thingsIn(shown),
    attachments: attachmentsOf(shown),
  })
}

/** The API does not show the content of a story. */
function storyIn(chat: Members): Pick<Inbound, 'quoted'> {
  const { name, id } = authorOf(chat, text(chat.title))
  return quotedPart({ author: { name, id }, text: '', things: [thing('story', name)] })
}

/** Returns what is neither text nor file in a message, or in the message that it quotes. */
function thingsIn(message: Members): readonly Thing[] {
  const found = THINGS.flatMap(([member, read]) =>
    typeof message[member] === 'object' && message[member] ? [read(members(message[member]))] : [],
  )
  if (message.rich_message !== undefined) return [...found, ...thingsOfBlocks(message.rich_message)]
  // A venue also has its location.
  const known = message.venue === undefined ? found : found.filter(({ kind }, index) => kind !== 'location' || index === 0)
  if (known.length > 0) return known
  return Object.keys(message).flatMap((member) => (isUnknown(member, message[member]) ? [unknownThing(member)] : []))
}

/** The members of a message that hold neither text nor file, in the words of the Bot API. */
const THINGS: readonly (readonly [member: string, read: (value: Members) => Thing])[] = [
  ['venue', ({ location: at, title, address }) => location(members(at).latitude, members(at).longitude, text(title), text(address))],
  ['location', ({ latitude, longitude }) => location(latitude, longitude)],
  [
    'contact',
    ({ first_name, last_name, phone_number, vcard }) =>
      thing('contact', [text(first_name), text(last_name)].join(' ').trim(), text(phone_number), ...vcardWords(text(vcard), ['TEL'])),
  ],
  ['sticker', ({ emoji, set_name }) => thing('sticker', text(emoji) || text(set_name))],
  ['dice', ({ emoji, value }) => thing('game', text(emoji), numberText(value))],
  [
    'poll',
    ({ question, description, options }) =>
      poll(
        [text(question), text(description)].filter((words) => words !== '').join(' '),
        list(options).map((option) => text(members(option).text)),
      ),
  ],
  ['poll_option_added', ({ option_text }) => thing('poll', 'a new choice', text(option_text))],
  ['checklist', ({ title, tasks }) => thing('checklist', text(title), ...list(tasks).map(taskText))],
  ['checklist_tasks_added', ({ tasks }) => thing('checklist', 'new tasks', ...list(tasks).map(taskText))],
  [
    'checklist_tasks_done',
    ({ checklist_message, marked_as_done_task_ids, marked_as_not_done_task_ids }) => {
      const { title, tasks } = members(members(checklist_message).checklist)
      const texts = new Map(list(tasks).map((task) => [members(task).id, text(members(task).text)]))
      const marked = (ids: unknown, state: string) => list(ids).map((id) => `${texts.get(id) || 'a task'} (${state})`)
      return thing('checklist', text(title), ...marked(marked_as_done_task_ids, 'done'), ...marked(marked_as_not_done_task_ids, 'not done'))
    },
  ],
  ['game', ({ title, description }) => thing('game', text(title), text(description))],
  ['invoice', ({ title, total_amount, currency }) => thing('payment', text(title), `${numberText(total_amount)} ${text(currency)}`.trim())],
  ['story', ({ chat }) => thing('story', text(members(chat).title) || text(members(chat).first_name))],
  ['paid_media', ({ star_count }) => thing('payment', 'paid media', `${numberText(star_count)} stars`)],
  ['gift', ({ text: note }) => thing('payment', 'gift', text(note))],
  ['unique_gift', ({ gift }) => thing('payment', 'gift', text(members(gift).base_name))],
  ['giveaway', ({ prize_description }) => thing('event', 'giveaway', text(prize_description))],
]

const taskText = (value: unknown): string => {
  const { text: words, completion_date } = members(value)
  return typeof completion_date === 'number' && completion_date > 0 ? `${text(words)} (done)` : text(words)
}

/** Members that describe a message, hold its text or files, or report something about the chat. */
const KNOWN_MEMBERS =
  /^(?:(?:message|thread|chat|business|media_group|effect|paid|suggested|direct|guest)_.*|message_id|from|sender_.*|date|edit_date|chat|text|caption|.*entities|link_preview_options|show_caption_above_media|has_.*|is_.*|can_.*|via_bot|author_signature|forward_.*|reply_.*|external_reply|quote|rich_message|origin|photo|voice|audio|animation|video|video_note|document|live_photo|new_chat_.*|left_chat_.*|delete_chat_.*|.*_chat_created|migrate_.*|pinned_message|successful_payment|refunded_payment|users?_shared|gift.*|unique_gift.*|connected_website|write_access_allowed|passport_data|proximity_alert_triggered|boost_added|checklist_tasks_.*|forum_topic_.*|general_forum_.*|giveaway_.*|poll_option_.*|video_chat_.*|voice_chat_.*|managed_.*|web_app_data)$/

const isUnknown = (member: string, value: unknown): boolean => typeof value === 'object' && value !== null && !KNOWN_MEMBERS.test(member)

const numberText = (value: unknown): string => (typeof value === 'number' ? String(value) : '')

/** Returns the largest of the sizes in which a photo is available. */
function largest(sizes: unknown): Members | undefined {
  const area = ({ width, height }: Members): number => (typeof width === 'number' && typeof height === 'number' ? width * height : 0)
  return list(sizes)
    .map(members)
    .filter(({ file_id: id }) => text(id) !== '')
    .reduce<Members | undefined>((best, size) => (best && area(best) >= area(size) ? best : size), undefined)
}
