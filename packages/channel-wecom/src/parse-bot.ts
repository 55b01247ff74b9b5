/** Parses messages of an AI bot; see https://developer.work.weixin.qq.com/document/path/100719. */
import { list, type Members, members, text, textAt, wordsIn } from '@sluice/kit/foreign-json'
import { type Attachment, type Inbound, quotedPart, type Thing, thing, thingsPart } from '@sluice/sdk'

export interface BotParseOptions {
  readonly botId: string
  /** The `req_id` of the frame, which a reply within five minutes repeats. */
  readonly request: string
  readonly nowMs: number
}

const ATTACHMENTS_MAX = 20

/** Returns the message as a list of one; empty for one without text and files. */
export function parseBot(body: Members, { botId, request, nowMs }: BotParseOptions): Inbound[] {
  const id = text(body.msgid)
  const sender = textAt(body, 'from.userid')
  const chat = text(body.chatid)
  if (id === '' || sender === '') return []
  const isGroup = body.chattype === 'group' && chat !== ''
  const content = contentOf(body, isGroup)
  const quote = quoteIn(members(body.quote))
  // A mention alone asks about the message that it quotes.
  if (content.text === '' && content.attachments.length === 0 && content.things.length === 0 && !quote.quoted) return []
  const sentAtMs = timeOf(body.create_time)
  return [
    {
      id,
      account: botId,
      sender,
      to: { to: isGroup ? `chat:${chat}` : `user:${sender}`, replyTo: id, more: { way: 'bot', request, atMs: String(nowMs) } },
      text: content.text,
      addressed: isGroup ? 'mention' : 'direct',
      ...thingsPart(content.things),
      ...quote,
      ...(content.attachments.length > 0 && { attachments: content.attachments }),
      ...(sentAtMs !== undefined && { sentAtMs }),
    },
  ]
}

/** Returns the pressed button of a card. `task_id` is the id that `send.ts` gave to the card. */
export function parsePress(body: Members, botId: string): Inbound[] {
  const event = members(body.event)
  const card = members(event.template_card_event)
  const task = text(event.task_id) || text(card.task_id)
  const value = text(event.event_key) || text(card.event_key)
  const [id, sender, chat] = [text(body.msgid), textAt(body, 'from.userid'), text(body.chatid)]
  if (event.eventtype !== 'template_card_event' || [task, value, id, sender].includes('')) return []
  const sentAtMs = timeOf(body.create_time)
  const to = body.chattype === 'group' && chat !== '' ? `chat:${chat}` : `user:${sender}`
  return [
    {
      id,
      account: botId,
      sender,
      to: { to, more: { way: 'bot' } },
      text: '',
      pressed: { message: task, value },
      ...(sentAtMs !== undefined && { sentAtMs }),
    },
  ]
}

interface Content {
  readonly text: string
  readonly attachments: readonly Attachment[]
  readonly things: readonly Thing[]
}

const words = (spoken: string): Content => ({ text: spoken, attachments: [], things: [] })

function contentOf(body: Members, isGroup: boolean): Content {
  const part = members(body[text(body.msgtype)])
  switch (body.msgtype) {
    case 'text':
      return words(withoutMention(text(part.content), isGroup))
    case 'voice':
      return words(text(part.content).trim())
    case 'image':
    case 'video':
    case 'file':
      return { text: '', attachments: fileOf(body.msgtype, part), things: [] }
    case 'mixed':
      return mixed(list(part.msg_item), isGroup)
    default:
      return { ...words(''), things: text(body.msgtype) === '' ? [] : [thing('unknown', text(body.msgtype), wordsIn(part))] }
  }
}

function mixed(items: readonly unknown[], isGroup: boolean): Content {
  const parts = items.slice(0, ATTACHMENTS_MAX).map(members)
  const spoken = parts.map((item) => textAt(item, 'text.content')).filter(Boolean)
  const others = parts.filter(({ msgtype }) => msgtype !== 'text' && msgtype !== 'mixed').map((item) => contentOf(item, isGroup))
  return {
    text: withoutMention(spoken.join('\n'), isGroup),
    attachments: others.flatMap(({ attachments }) => attachments),
    things: others.flatMap(({ things }) => things),
  }
}

/** A message in a group begins with the mention of the bot, which WeCom does not mark otherwise. */
const withoutMention = (spoken: string, isGroup: boolean): string =>
  (isGroup ? spoken.replace(/^\s*@\S+(?:\s|\u2005)*/u, '') : spoken).trim()

/** The address is valid for five minutes, and its file is encrypted with the key. A fragment is not sent to the server. */
function fileOf(kind: Attachment['kind'], { url, aeskey, filename, name }: Members): Attachment[] {
  if (text(url) === '') return []
  const key = text(aeskey)
  return [{ kind, name: text(filename) || text(name) || kind, source: { url: key === '' ? text(url) : `${text(url)}#${key}` } }]
}

/** WeCom names no author of the quoted message. */
const quoteIn = (quote: Members): Pick<Inbound, 'quoted'> => quotedPart(contentOf(quote, false))

const timeOf = (secs: unknown): number | undefined => (Number.isSafeInteger(secs) && Number(secs) > 0 ? Number(secs) * 1000 : undefined)
