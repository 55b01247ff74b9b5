/** Parses robot messages; see "Receive messages" at https://open.dingtalk.com/document/orgapp/receive-message. */
import { list, type Members, members, parsedOrUndefined, text, textAt, wordsIn } from '@sluice/kit/foreign-json'
import { type Attachment, forwardedPart, type Inbound, namePart, quotedPart, type Thing, thing, thingsPart } from '@sluice/sdk'
import { groupAddress } from './address.ts'

export interface ParseOptions {
  /** The Client ID of the app. */
  readonly account: string
}

const GROUP_CHAT = '2'
const ATTACHMENTS_MAX = 20
/** The type of messages that a person passes on together. */
const CHAT_RECORD = 'chatRecord'
const RECORDS_MAX = 1000

/** Returns the message as a list of one; empty for a message that is our own, or has neither text nor files. */
export function parse(data: unknown, { account }: ParseOptions): Inbound[] {
  const message = members(data)
  const id = text(message.msgId)
  // People outside of the organisation have no staff id. `senderId` begins with `$:`, so it never equals a staff id.
  const staff = text(message.senderStaffId)
  const sender = staff || text(message.senderId)
  const conversation = text(message.conversationId)
  if (id === '' || sender === '' || conversation === '' || isOwn(message)) return []
  const content = contentOf(message)
  const quote = quoteIn(members(message.text), message)
  const isForwarded = message.msgtype === CHAT_RECORD
  // A mention alone asks about the message that it quotes.
  const isEmpty = content.text === '' && content.attachments.length === 0 && content.things.length === 0
  if (isEmpty && !quote.quoted && !isForwarded) return []
  const session = URL.parse(text(message.sessionWebhook))?.searchParams.get('session') ?? ''
  const untilMs = timeOf(message.sessionWebhookExpiredTime)
  const more = { ...(session !== '' && { session, untilMs: String(untilMs ?? 0) }), ...(staff !== '' && { staff }) }
  const isGroup = [GROUP_CHAT, Number(GROUP_CHAT)].includes(message.conversationType as string)
  const sentAtMs = timeOf(message.createAt)
  return [
    {
      id,
      account,
      sender,
      ...namePart(text(message.senderNick)),
      to: { to: isGroup ? groupAddress(conversation) : sender, replyTo: id, ...(Object.keys(more).length > 0 && { more }) },
      ...(isForwarded ? { text: '', ...forwardedPart({ text: content.text || `[${CHAT_RECORD}]` }) } : { text: content.text }),
      addressed: isGroup ? 'mention' : 'direct',
      ...thingsPart(content.things),
      ...quote,
      ...(content.attachments.length > 0 && { attachments: content.attachments }),
      ...(sentAtMs !== undefined && { sentAtMs }),
    },
  ]
}

const isOwn = ({ senderId, chatbotUserId }: Members): boolean => text(senderId) !== '' && senderId === chatbotUserId

interface Content {
  readonly text: string
  readonly attachments: readonly Attachment[]
  readonly things: readonly Thing[]
}

const words = (spoken: string): Content => ({ text: spoken, attachments: [], things: [] })
const files = (attachments: readonly Attachment[]): Content => ({ text: '', attachments, things: [] })

function contentOf(message: Members): Content {
  const content = members(message.content)
  switch (message.msgtype) {
    case 'text':
      return words(textAt(message, 'text.content').trim())
    case 'richText':
      return richText(list(content.richText))
    case 'picture':
      return files(fileOf('image', content, 'picture'))
    case 'audio': {
      // DingTalk recognises speech itself, so the recording is needed only without the words.
      const spoken = text(content.recognition).trim()
      return spoken === '' ? files(fileOf('audio', content, 'recording')) : words(spoken)
    }
    case 'video':
      return files(fileOf('video', content, videoName(content)))
    case 'file':
      return files(fileOf('file', content, text(content.fileName) || 'file'))
    case CHAT_RECORD:
      return words(recordWords(content))
    default:
      return { ...words(''), things: unknownThings(message) }
  }
}

/** DingTalk puts a content at `content`, or at the name of its type. */
const unknownThings = ({ msgtype, content, ...others }: Members): readonly Thing[] =>
  text(msgtype) === '' ? [] : [thing('unknown', text(msgtype), wordsIn(content) || wordsIn(others[text(msgtype)]))]

/**
 * Reads messages that a person passes on together: a title, and either the messages as JSON in a text, or a summary of them. DingTalk does
 * not document the form; public clients read these members.
 */
function recordWords({ title, summary, chatRecord }: Members): string {
  const records = list(typeof chatRecord === 'string' ? parsedOrUndefined(chatRecord) : chatRecord).slice(0, RECORDS_MAX)
  const lines = records.map((record) => {
    const said = textAt(record, 'content', 'text', 'content.text')
    const writer = textAt(record, 'senderName', 'senderNick')
    return said === '' ? '' : writer === '' ? said : `${writer}: ${said}`
  })
  const found = lines.some((line) => line !== '') ? lines : [text(summary)]
  return [text(title), ...found].filter((line) => line.trim() !== '').join('\n')
}

function richText(parts: readonly unknown[]): Content {
  const pieces = parts.map(members)
  const spoken = pieces.map((piece) => text(piece.text)).join('')
  const pictures = pieces.flatMap((piece) => (piece.type === 'picture' ? fileOf('image', piece, 'picture') : []))
  return { text: spoken.trim(), attachments: pictures.slice(0, ATTACHMENTS_MAX), things: [] }
}

/** `downloadCode` is exchanged for an address when the turn begins. */
function fileOf(kind: Attachment['kind'], { downloadCode, pictureDownloadCode }: Members, name: string): Attachment[] {
  const id = text(downloadCode) || text(pictureDownloadCode)
  return id === '' ? [] : [{ kind, name, source: { id } }]
}

const videoName = ({ videoType }: Members): string => (/^\w{1,8}$/.test(text(videoType)) ? `video.${videoType}` : 'video')

/** DingTalk sends the quoted message without documenting it, so other forms are ignored. */
function quoteIn({ isReplyMsg, repliedMsg }: Members, { senderId, chatbotUserId }: Members): Pick<Inbound, 'quoted' | 'inReplyTo'> {
  if (isReplyMsg !== true) return {}
  const replied = members(repliedMsg)
  const content = members(replied.content)
  const type = text(replied.msgType)
  const quoted = contentOf({ ...replied, msgtype: type, text: replied.content })
  const spoken = text(replied.content) || text(content.text) || quoted.text || richText(list(content.richText)).text
  const inReplyTo = text(replied.msgId)
  const id = text(replied.senderId)
  // Other people wrote the words of messages that were passed on.
  const by = id === '' || type === CHAT_RECORD ? undefined : id === chatbotUserId ? 'bot' : id === senderId ? 'sender' : undefined
  return {
    ...(inReplyTo !== '' && { inReplyTo }),
    ...quotedPart({
      id: inReplyTo,
      by,
      author: { id },
      text: spoken.trim(),
      things: spoken.trim() === '' ? quoted.things : [],
      attachments: quoted.attachments,
    }),
  }
}

const timeOf = (value: unknown): number | undefined => (Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : undefined)
