/** Parses the events of a webhook request. */
import { list, type Members, members, parseObject, text, textAt } from '@sluice/kit/foreign-json'
import { type Attachment, type Inbound, location, overheardPart, type Raw, thing, thingsPart, unknownThing } from '@sluice/sdk/webhook'

/** The part of the configuration that decides which messages are accepted, and which of them are only overheard. */
export interface Accepted {
  readonly groupPolicy: 'mention' | 'open' | 'disabled'
  /** The senders that may write in groups. Undefined: the daemon decides, as for direct messages. */
  readonly groupSenders: readonly string[] | undefined
}

interface Source {
  /** The user, group or multi-person chat. */
  readonly conversation: string
  readonly sender: string
  readonly isGroup: boolean
}

/** LINE documents no limit; it sends a handful of events in one request. */
const EVENTS_MAX = 100
const KEYWORDS_MAX = 15

/** Returns the messages, deletions and presses of a request. Throws `invalid_request` for a body that is not a JSON object. */
export function parse({ body }: Pick<Raw, 'body'>, accepted: Accepted): Inbound[] {
  const { destination, events } = parseObject(body)
  const account = text(destination)
  return list(events)
    .slice(0, EVENTS_MAX)
    .flatMap((event) => inboundOf(members(event), account, accepted) ?? [])
}

function inboundOf(event: Members, account: string, accepted: Accepted): Inbound | undefined {
  const source = sourceOf(event, account)
  // In standby mode another module of the official account answers.
  if (!source || account === '' || event.mode === 'standby') return undefined
  if (source.isGroup && !isAcceptedGroup(source, accepted)) return undefined
  switch (event.type) {
    case 'message':
      return messageOf(event, account, source, accepted)
    case 'messageEdited':
      return editOf(event, account, source, accepted)
    case 'unsend':
      return deletionOf(event, account, source)
    case 'postback':
      return pressOf(event, account, source)
    default:
      return undefined
  }
}

/** Undefined for an event without a user, such as one of a person who has not agreed that bots learn the id, and for the bot itself. */
function sourceOf({ source }: Members, account: string): Source | undefined {
  const sender = textAt(source, 'userId')
  const group = textAt(source, 'groupId', 'roomId')
  if (sender === '' || sender === account) return undefined
  return { conversation: group || sender, sender, isGroup: group !== '' }
}

const isAcceptedGroup = ({ sender }: Source, { groupPolicy, groupSenders }: Accepted): boolean =>
  groupPolicy !== 'disabled' && (groupSenders === undefined || groupSenders.includes('*') || groupSenders.includes(sender))

function messageOf(event: Members, account: string, source: Source, { groupPolicy }: Accepted): Inbound | undefined {
  const message = members(event.message)
  const id = text(message.id)
  const mentions = selfMentions(message)
  const addressed = addressedAs(source, mentions)
  const content = contentOf(message, mentions)
  if (id === '' || !content) return undefined
  const inReplyTo = text(message.quotedMessageId)
  const quote = text(message.quoteToken)
  const set = textAt(message, 'imageSet.id')
  return {
    id,
    account,
    sender: source.sender,
    to: {
      to: source.conversation,
      ...replyTo(event),
      ...(source.isGroup && quote !== '' && { more: { quote } }),
    },
    addressed,
    ...overheardPart({ addressed }, groupPolicy === 'mention'),
    ...content,
    ...sentAt(event),
    ...(inReplyTo !== '' && { inReplyTo }),
    ...(set !== '' && { group: { id: set } }),
  }
}

/** Names each edit by its time, which differs for each. An edit need not mention the bot: it counts if its message did. */
function editOf(event: Members, account: string, source: Source, { groupPolicy }: Accepted): Inbound | undefined {
  const message = members(event.message)
  const id = text(message.id)
  const mentions = selfMentions(message)
  const content = contentOf(message, mentions)
  const time = sentAt(event)
  if (id === '' || !content || time.sentAtMs === undefined) return undefined
  const to = { to: source.conversation, ...replyTo(event) }
  const addressed = addressedAs(source, mentions)
  return {
    id: `edit:${id}:${time.sentAtMs}`,
    account,
    sender: source.sender,
    to,
    addressed,
    ...overheardPart({ addressed }, groupPolicy === 'mention'),
    ...content,
    ...time,
    changes: { message: id, what: 'edited', only: 'text' },
  }
}

function deletionOf(event: Members, account: string, { conversation, sender }: Source): Inbound | undefined {
  const message = textAt(event, 'unsend.messageId')
  if (message === '') return undefined
  const to = { to: conversation }
  return { id: `unsend:${message}`, account, sender, to, text: '', ...sentAt(event), changes: { message, what: 'deleted' } }
}

/** A postback does not name the message with the button. */
function pressOf(event: Members, account: string, { conversation, sender }: Source): Inbound | undefined {
  const [id, value] = [text(event.webhookEventId), textAt(event, 'postback.data')]
  if (id === '' || value === '') return undefined
  const to = { to: conversation, ...replyTo(event) }
  return { id, account, sender, to, text: '', ...sentAt(event), pressed: { message: '', value } }
}

const replyTo = ({ replyToken }: Members): { readonly replyTo?: string } => (text(replyToken) === '' ? {} : { replyTo: text(replyToken) })

const sentAt = ({ timestamp }: Members): { readonly sentAtMs?: number } =>
  typeof timestamp === 'number' && Number.isSafeInteger(timestamp) && timestamp > 0 ? { sentAtMs: timestamp } : {}

interface Span {
  readonly from: number
  readonly to: number
}

const addressedAs = ({ isGroup }: Source, mentions: readonly Span[]): 'direct' | 'mention' | 'overheard' =>
  isGroup ? (mentions.length > 0 ? 'mention' : 'overheard') : 'direct'

/** Returns where the text mentions the bot, in order. `index` and `length` count UTF-16 units. */
function selfMentions(message: Members): readonly Span[] {
  return list(members(message.mention).mentionees)
    .map(members)
    .filter(({ isSelf, index, length }) => isSelf === true && Number.isSafeInteger(index) && Number.isSafeInteger(length))
    .map(({ index, length }) => ({ from: Number(index), to: Number(index) + Number(length) }))
    .toSorted((a, b) => a.from - b.from)
}

function contentOf(message: Members, mentions: readonly Span[]): Pick<Inbound, 'text' | 'attachments' | 'things'> | undefined {
  switch (message.type) {
    case 'text': {
      // A mention alone asks about the message that it quotes.
      const plain = without(text(message.text), mentions) || (text(message.quotedMessageId) === '' ? '' : text(message.text).trim())
      return plain === '' ? undefined : { text: plain }
    }
    case 'image':
    case 'video':
    case 'audio':
    case 'file':
      return { text: '', attachments: [attachmentOf(message, message.type)] }
    case 'location':
      return { text: '', ...thingsPart([location(message.latitude, message.longitude, text(message.title), text(message.address))]) }
    case 'sticker':
      return { text: '', ...thingsPart([stickerIn(message)]) }
    default:
      return text(message.type) === '' ? undefined : { text: '', ...thingsPart([unknownThing(text(message.type))]) }
  }
}

function without(plain: string, spans: readonly Span[]): string {
  let [rest, from] = ['', 0]
  for (const span of spans) {
    rest += plain.slice(from, span.from)
    from = Math.max(from, span.to)
  }
  return (rest + plain.slice(from)).replaceAll(/ {2,}/g, ' ').trim()
}

/** A file of LINE is fetched by the id of its message. A bot can also be sent files of another server. */
function attachmentOf(message: Members, kind: Attachment['kind']): Attachment {
  const external = textAt(message, 'contentProvider.originalContentUrl')
  const isExternal = textAt(message, 'contentProvider.type') === 'external' && external !== ''
  const source = isExternal ? { url: external } : { id: text(message.id) }
  return { kind, name: text(message.fileName) || kind, source }
}

/** The keywords describe the sticker; the text is what the sender wrote on it. */
function stickerIn(message: Members) {
  const words = list(message.keywords).map(text).slice(0, KEYWORDS_MAX)
  return thing('sticker', text(message.text) || words.filter((word) => word !== '').join(', '))
}
