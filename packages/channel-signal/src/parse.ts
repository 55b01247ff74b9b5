/** Parses the envelopes that signal-cli reports; see its manual page signal-cli-jsonrpc(5). */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import { attachmentKind } from '@sluice/kit/media-type'
import {
  type Address,
  type Addressed,
  type Attachment,
  type Inbound,
  namePart,
  poll,
  quotedPart,
  type Thing,
  thing,
  thingsPart,
  unknownThing,
} from '@sluice/sdk'

/** The settings that decide which messages are taken. */
export interface ParseOptions {
  readonly account: string
  readonly group_id?: string | undefined
  readonly ignore_attachments: boolean
  readonly ignore_stories: boolean
}

const GROUP = 'group:'
/** Stands in the text where a person is mentioned. */
const MENTION = '\uFFFC'
const ATTACHMENTS_MAX = 32

/** Returns the address of a group. */
export const groupOf = ({ to }: Address): string | undefined => (to.startsWith(GROUP) ? to.slice(GROUP.length) : undefined)

/** Returns the author and the time in a message id, or undefined for another text. */
export function partsOf(id: string): { readonly author: string; readonly atMs: number } | undefined {
  const [author = '', time = ''] = id.split('/')
  return author !== '' && /^\d{1,15}$/.test(time) ? { author, atMs: Number(time) } : undefined
}

/** Returns the message of an event as a list of one; empty for receipts, typing, our own messages and groups that are not configured. */
export function parse(json: unknown, options: ParseOptions): Inbound[] {
  const envelope = members(members(json).envelope)
  const author = text(envelope.sourceUuid) || text(envelope.source)
  const sender = text(envelope.sourceNumber) || author
  if (author === '' || sender === options.account) return []
  const called = callIn(envelope, { author, sender }, options)
  if (called) return [called]
  const { storyMessage, editMessage } = envelope
  const edit = members(editMessage)
  const data = members(editMessage === undefined ? envelope.dataMessage : edit.dataMessage)
  const story = options.ignore_stories ? {} : members(storyMessage)
  const atMs = timeOf(data.timestamp) ?? timeOf(envelope.timestamp)
  if (atMs === undefined) return []
  const group = text(members(data.groupInfo ?? data.groupV2).groupId) || text(story.groupId)
  if (!isTaken(group, options)) return []
  const content = contentOf({ data, story, edit, author, sender }, options)
  if (!content) return []
  const id = `${author}/${atMs}`
  const to = { to: group === '' ? sender : GROUP + group, replyTo: id }
  const addressed = group === '' ? 'direct' : addressedInGroup(data, options)
  return [{ id, account: options.account, sender, ...namePart(text(envelope.sourceName)), to, addressed, ...content, sentAtMs: atMs }]
}

/** Describes a call, which this channel does not take. Of the messages of a call, only the offer begins one. */
function callIn(
  { callMessage, timestamp, sourceName }: Members,
  { author, sender }: Pick<Parts, 'author' | 'sender'>,
  options: ParseOptions,
): Inbound | undefined {
  const offer = members(callMessage).offerMessage
  const atMs = timeOf(timestamp)
  if (offer === undefined || offer === null || atMs === undefined || !isTaken('', options)) return undefined
  const kind = text(members(offer).type)
    .replace(/_CALL$/, '')
    .toLowerCase()
  return {
    id: `${author}/${atMs}`,
    account: options.account,
    sender,
    ...namePart(text(sourceName)),
    to: { to: sender },
    addressed: 'direct',
    text: '',
    ...thingsPart([thing('call', kind)]),
    sentAtMs: atMs,
  }
}

const isTaken = (group: string, { group_id: wanted }: ParseOptions): boolean =>
  wanted === undefined || (wanted === 'dm' ? group === '' : group === wanted)

function addressedInGroup({ mentions, quote }: Members, { account }: ParseOptions): Addressed {
  const isBot = ({ number, uuid }: Members): boolean => number === account || uuid === account
  if (list(mentions).map(members).some(isBot)) return 'mention'
  return [members(quote).author, members(quote).authorNumber].includes(account) ? 'reply' : 'overheard'
}

interface Parts {
  readonly data: Members
  readonly story: Members
  readonly edit: Members
  readonly author: string
  readonly sender: string
}

type Content = Pick<Inbound, 'text' | 'attachments' | 'things' | 'changes' | 'inReplyTo' | 'quoted'>

/** Returns undefined for an envelope without a text, a file or a change. */
function contentOf({ data, story, edit, author, sender }: Parts, { account, ignore_attachments }: ParseOptions): Content | undefined {
  const deletedMs = timeOf(members(data.remoteDelete).timestamp)
  if (deletedMs !== undefined) return { text: '', changes: { message: `${author}/${deletedMs}`, what: 'deleted' } }
  // The platform accepts such a deletion from administrators of the group only.
  const removed = members(data.adminDelete)
  const [removedMs, removedAuthor] = [timeOf(removed.targetSentTimestamp), text(removed.targetAuthorUuid) || text(removed.targetAuthor)]
  if (removedMs !== undefined && removedAuthor !== '')
    return { text: '', changes: { message: `${removedAuthor}/${removedMs}`, what: 'deleted' } }
  const files = [...list(data.attachments), ...(story.fileAttachment ? [story.fileAttachment] : [])].slice(0, ATTACHMENTS_MAX)
  const attachments = ignore_attachments ? [] : filesOf(files)
  const words = withNames(text(data.message), list(data.mentions), account) || text(members(story.textAttachment).text)
  const things = thingsIn(data)
  const editedMs = timeOf(edit.targetSentTimestamp)
  const quote = members(data.quote)
  const quotedMs = timeOf(quote.id)
  const quoted = text(quote.authorUuid) || text(quote.author)
  const inReplyTo = quotedMs === undefined || quoted === '' ? '' : `${quoted}/${quotedMs}`
  const names = [quoted, text(quote.authorNumber), text(quote.author)]
  const quotedFiles = ignore_attachments ? [] : filesOf(list(quote.attachments).map((file) => members(file).thumbnail ?? file))
  const asked = quotedPart({
    id: inReplyTo,
    by: names.includes(account) ? 'bot' : names.includes(author) || names.includes(sender) ? 'sender' : undefined,
    author: { name: text(quote.authorName), id: text(quote.authorNumber) || quoted },
    text: withNames(text(quote.text), list(quote.mentions), ''),
    attachments: quotedFiles,
  })
  // A mention alone asks about the message that it quotes.
  if (words === '' && attachments.length === 0 && things.length === 0 && !asked.quoted) return undefined
  return {
    text: words,
    ...(attachments.length > 0 && { attachments }),
    ...(editedMs !== undefined && { changes: { message: `${author}/${editedMs}`, what: 'edited' as const } }),
    ...thingsPart(things),
    ...(inReplyTo !== '' && { inReplyTo }),
    ...asked,
  }
}

/** Replaces the marks of mentions by names, in their order. A mention of the bot in front only addresses it, so it is left out. */
function withNames(message: string, mentions: readonly unknown[], account: string): string {
  const mentioned = mentions.map(members).toSorted((a, b) => Number(a.start) - Number(b.start))
  const names = mentioned.map(({ name, number, uuid }) => text(name) || text(number) || text(uuid))
  const [first = '', ...rest] = message.split(MENTION)
  if (first.trim() === '' && [mentioned[0]?.number, mentioned[0]?.uuid].includes(account)) {
    const after = rest[0]?.replace(/^[\s,:]+/, '') ?? ''
    return [after, ...rest.slice(1).map((part, index) => `@${names[index + 1] || 'somebody'}${part}`)].join('')
  }
  return first + rest.map((part, index) => `@${names[index] || 'somebody'}${part}`).join('')
}

const filesOf = (files: readonly unknown[]): Attachment[] =>
  files.map((file) => attachmentOf(members(file))).filter((file) => file !== undefined)

/** The members of a message that hold neither text nor file, in the words of signal-cli. */
function thingsIn(data: Members): readonly Thing[] {
  const [sticker, asked, payment] = [members(data.sticker), members(data.pollCreate), data.payment]
  const things = [
    ...list(data.contacts).map((contact) => contactOf(members(contact))),
    ...list(data.previews).map((preview) => linkOf(members(preview))),
    ...(data.sticker ? [thing('sticker', text(sticker.emoji))] : []),
    ...(data.pollCreate ? [poll(text(asked.question), list(asked.options).map(text))] : []),
    ...(payment ? [thing('payment', text(members(payment).note))] : []),
  ]
  if (things.length > 0 || typeof data.message === 'string') return things
  // Linked devices get such a message without its file.
  if (data.viewOnce === true && list(data.attachments).length === 0) return [unknownThing('media to be viewed once')]
  return Object.keys(data).flatMap((member) => (isUnknown(member, data[member]) ? [unknownThing(member)] : []))
}

const KNOWN_MEMBERS =
  /^(?:message|timestamp|expiresInSeconds|isExpirationUpdate|viewOnce|reaction|quote|payment|mentions|previews|attachments|sticker|remoteDelete|adminDelete|contacts|textStyles|groupInfo|groupV2|storyContext|poll.*|pin.*|unpin.*|.*Update|groupCallUpdate)$/

const isUnknown = (member: string, value: unknown): boolean => typeof value === 'object' && value !== null && !KNOWN_MEMBERS.test(member)

function contactOf({ name, phone, email, organization }: Members): Thing {
  const { display, given, family } = members(name)
  const full = text(display) || [text(given), text(family)].filter((part) => part !== '').join(' ')
  const values = [...list(phone), ...list(email)].map((each) => text(members(each).value))
  return thing('contact', full, text(organization), ...values)
}

const linkOf = ({ url, title, description }: Members): Thing => thing('link', text(title), text(description), text(url))

function attachmentOf({ id, contentType, filename }: Members): Attachment | undefined {
  if (text(id) === '') return undefined
  const mime = text(contentType)
  const kind = attachmentKind(mime)
  return { kind, name: text(filename) || kind, ...(mime && { mime }), source: { id: text(id) } }
}

const timeOf = (value: unknown): number | undefined => (Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : undefined)
