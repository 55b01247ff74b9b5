/** Reads received messages: who wrote them, where, and whether they are for the bot. */
import { type Address, type Addressed, forwardedPart, type Inbound, namePart, overheardPart, quotedPart, thingsPart } from '@sluice/sdk'
import type { proto } from '@whiskeysockets/baileys'
import type { ChatappWebConfig } from './config.ts'
import { type Content, contentOf, opened } from './content.ts'
import type { Received } from './device-state.ts'
import { isGroup, isLid, messageId, numberJid, personOf, senderOf } from './jid.ts'
import type { Library } from './library.ts'

export interface ParseOptions {
  readonly library: Library
  readonly config: ChatappWebConfig
  /** The number of the account, as `+` and digits. */
  readonly account: string
  /** The hidden id of the account, as `<digits>@lid`; empty if it has none. */
  readonly ownLid: string
  /** Returns the number of the user of a hidden id, if it is known. Throws `unavailable` if the store fails. */
  numberOf(lidUser: string): Promise<string | undefined>
  /** Returns the value of the button that a reaction to a message of the bot presses. */
  pressed(message: string, emoji: string): string | undefined
}

/** The longest part of a message that a reply to it quotes. */
const QUOTE_CHARS_MAX = 200
/** The attribute `edit` of a stanza that deletes a message of another member, which the platform accepts from administrators only. */
const BY_ADMIN = '8'

type Type = proto.Message.ProtocolMessage.Type

/** Returns undefined for own messages, for other conversations than configured, and for events that are not messages. Throws what `numberOf` throws. */
export async function parse(received: Received, options: ParseOptions): Promise<Inbound | undefined> {
  const { library, config, account } = options
  const chat = received.key.remoteJid ?? ''
  const id = received.key.id ?? ''
  const isOwn = received.key.fromMe === true
  const raw = library.proto.Message.decode(Buffer.from(received.content, 'base64'))
  // The account's own phone sends the device copies of its messages. No one else may send such a copy.
  const { message, isPassedOn } = opened(library, (isOwn && raw.deviceSentMessage?.message) || raw)
  const author = isOwn ? account : await authorOf(received, options)
  if (!message || id === '' || author === undefined) return undefined
  const inGroup = isGroup(chat)
  if (!inGroup && personOf(chat) === undefined) return undefined
  if (author === account && !(await isNoteToSelf(chat, options))) return undefined
  if ((inGroup ? config.group_policy : config.dm_policy) === 'ignore') return undefined
  if (inGroup && config.allowed_groups.length > 0 && !config.allowed_groups.includes(chat)) return undefined
  const base = { id: messageId(author, id), account, sender: author, sentAtMs: received.atSecs * 1000 }
  // A reply to a number reaches the same person as one to the hidden id, and keeps one conversation.
  const to = inGroup ? chat : author.startsWith('+') ? numberJid(author) : author
  if (message.protocolMessage)
    return change(message.protocolMessage, base, { to, isByAdmin: inGroup && received.edit === BY_ADMIN }, options)
  if (message.reactionMessage) return press(message.reactionMessage, base, to, options)
  const found = contentOf(message)
  if (!found) return undefined
  const content = isPassedOn ? { ...found, isPassedOn } : found
  const addressed = await addressedTo(content, inGroup, options)
  const wireAuthor = received.key.participant || chat
  return {
    ...base,
    // The own phone sends the name of the account with each copy.
    ...namePart(received.pushName ?? ''),
    to: { to, replyTo: base.id, more: moreOf(content, addressed.text, inGroup ? wireAuthor : '') },
    addressed: addressed.as,
    ...overheardPart({ addressed: addressed.as }, config.mention_only),
    ...bodyOf(content, addressed.text),
    ...albumPart([raw, raw.deviceSentMessage?.message, message], options),
    ...(addressed.quoted !== undefined && { inReplyTo: addressed.quoted }),
    ...(await quoteIn(content, base.sender, addressed.quoted, options)),
  }
}

/** The platform vouches for both addresses of an author. A hidden id without a known number stays one, and matches no number. */
async function authorOf({ key }: Received, options: ParseOptions): Promise<string | undefined> {
  const jid = (isGroup(key.remoteJid ?? '') ? key.participant : key.remoteJid) ?? ''
  const other = (isGroup(key.remoteJid ?? '') ? key.participantAlt : key.remoteJidAlt) ?? ''
  return identityOf(isLid(jid) && personOf(other) ? other : jid, options)
}

async function identityOf(jid: string, { numberOf, ownLid, account }: ParseOptions): Promise<string | undefined> {
  const person = personOf(jid)
  const sender = senderOf(jid)
  if (!person || sender === undefined || !isLid(jid)) return sender
  if (sender === ownLid) return account
  const number = await numberOf(person.user)
  return number === undefined ? sender : `+${number}`
}

const isNoteToSelf = async (chat: string, options: ParseOptions): Promise<boolean> =>
  options.config.self_chat_mode && (await identityOf(chat, options)) === options.account

function moreOf({ isVoice, attachments }: Content, words: string, author: string): Record<string, string> {
  const quote = words.slice(0, QUOTE_CHARS_MAX).toWellFormed() || (attachments?.[0]?.name ?? '')
  return { ...(author !== '' && { author }), ...(quote !== '' && { quote }), ...(isVoice && { voice: 'yes' }) }
}

/** The words and files of a forwarded message come from others: the platform names channels, and no people. */
function bodyOf(
  { context, attachments, things, isPassedOn }: Content,
  words: string,
): Pick<Inbound, 'text' | 'attachments' | 'things' | 'forwarded'> {
  if (isPassedOn || context?.isForwarded === true) {
    const author = { name: context?.forwardedNewsletterMessageInfo?.newsletterName ?? '' }
    return { text: '', ...forwardedPart({ text: words, attachments, things, author, kind: 'room' }) }
  }
  return { text: words, ...(attachments && { attachments }), ...thingsPart(things ?? []) }
}

/** The members of an album name the message that has announced it. A client puts the name inside or outside of the envelopes of a message. */
function albumPart(layers: readonly (proto.IMessage | null | undefined)[], { library }: ParseOptions): Pick<Inbound, 'group'> {
  const { MEDIA_ALBUM } = library.proto.MessageAssociation.AssociationType
  const associations = layers.map((layer) => layer?.messageContextInfo?.messageAssociation)
  const id = associations.find((one) => one?.associationType === MEDIA_ALBUM)?.parentMessageKey?.id
  return id ? { group: { id } } : {}
}

/** The client of the sender puts the quoted message into its own, and could change it: words of the sender at most. */
async function quoteIn(
  { context }: Content,
  sender: string,
  id: string | undefined,
  options: ParseOptions,
): Promise<Pick<Inbound, 'quoted'>> {
  const { message, isPassedOn } = opened(options.library, context?.quotedMessage)
  const content = message ? contentOf(message) : undefined
  if (!content) return {}
  const author = context?.participant ? await identityOf(context.participant, options) : undefined
  const by = author === options.account ? 'bot' : author === sender ? 'sender' : undefined
  const { text } = await withoutMentions(content, options)
  const isForwarded = isPassedOn || content.isPassedOn || content.context?.isForwarded === true
  return quotedPart({ id, by: isForwarded ? undefined : by, author: { id: author }, ...content, text })
}

interface AddressedText {
  readonly text: string
  readonly quoted?: string
  readonly as: Addressed
}

async function addressedTo(content: Content, inGroup: boolean, options: ParseOptions): Promise<AddressedText> {
  const { context } = content
  const quotedBy = context?.participant ? await identityOf(context.participant, options) : undefined
  const quoted = context?.stanzaId && quotedBy !== undefined ? messageId(quotedBy, context.stanzaId) : undefined
  const { text, isMentioned } = await withoutMentions(content, options)
  const isNamed = isMentioned || hasName(text, options.config.mention_names)
  const as = !inGroup ? 'direct' : isNamed ? 'mention' : quotedBy === options.account ? 'reply' : 'overheard'
  return { text, as, ...(quoted !== undefined && { quoted }) }
}

/** A mention is `@` and the user part of an address. One of the bot in front only addresses it, so it is left out. */
async function withoutMentions(
  { text, context }: Content,
  options: ParseOptions,
): Promise<{ readonly text: string; readonly isMentioned: boolean }> {
  let words = text
  let isMentioned = false
  for (const jid of context?.mentionedJid ?? []) {
    const person = personOf(jid)
    const identity = await identityOf(jid, options)
    if (!person || identity === undefined) continue
    const mention = `@${person.user}`
    if (identity !== options.account) words = words.replaceAll(mention, `@${identity}`)
    else {
      isMentioned = true
      if (words.trimStart().startsWith(mention))
        words = words
          .trimStart()
          .slice(mention.length)
          .replace(/^[\s,:]+/, '')
    }
  }
  return { text: words, isMentioned }
}

const hasName = (text: string, names: readonly string[]): boolean => {
  const words = ` ${text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, ' ')} `
  return names.some((name) =>
    words.includes(
      ` ${name
        .toLowerCase()
        .replace(/[^\p{L}\p{N}]+/gu, ' ')
        .trim()} `,
    ),
  )
}

type Base = Pick<Inbound, 'id' | 'account' | 'sender' | 'sentAtMs'>

/** An edit or a deletion. Only the author of a message edits it; in a group, an administrator may delete it, too. */
async function change(
  event: proto.Message.IProtocolMessage,
  base: Base,
  { to, isByAdmin }: { readonly to: string; readonly isByAdmin: boolean },
  options: ParseOptions,
): Promise<Inbound | undefined> {
  const { REVOKE, MESSAGE_EDIT } = options.library.proto.Message.ProtocolMessage.Type as unknown as Record<'REVOKE' | 'MESSAGE_EDIT', Type>
  const target = event.key?.id ?? ''
  if (target === '') return undefined
  const address: Address = { to, replyTo: base.id }
  if (event.type === REVOKE) {
    const author = isByAdmin && event.key?.participant ? await identityOf(event.key.participant, options) : base.sender
    if (author === undefined) return undefined
    return { ...base, to: address, text: '', changes: { message: messageId(author, target), what: 'deleted' } }
  }
  const edited = event.type === MESSAGE_EDIT ? opened(options.library, event.editedMessage).message : undefined
  const content = edited ? contentOf(edited) : undefined
  if (!content) return undefined
  const { text, isMentioned } = await withoutMentions(content, options)
  const more = moreOf(content, text, '')
  const message = messageId(base.sender, target)
  const addressed = !isGroup(to) ? 'direct' : isMentioned || hasName(text, options.config.mention_names) ? 'mention' : 'overheard'
  const mark = overheardPart({ addressed }, options.config.mention_only)
  return { ...base, to: { to, replyTo: message, more }, addressed, ...mark, text, changes: { message, what: 'edited', only: 'text' } }
}

/** A reaction to a question of the bot presses one of its buttons. Any other reaction needs no answer. */
async function press(
  reaction: proto.Message.IReactionMessage,
  base: Base,
  to: string,
  options: ParseOptions,
): Promise<Inbound | undefined> {
  const message = messageId(options.account, reaction.key?.id ?? '')
  const value = reaction.text ? options.pressed(message, reaction.text) : undefined
  return value === undefined ? undefined : { ...base, to: { to }, text: '', pressed: { message, value } }
}
