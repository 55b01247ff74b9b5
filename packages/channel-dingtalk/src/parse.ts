/** Parses robot messages; see "Receive messages" at https://open.dingtalk.com/document/orgapp/receive-message. */
import { list, type Members, members, text, textAt } from '@sluice/kit/foreign-json'
import type { Attachment, Inbound } from '@sluice/sdk'
import { groupAddress } from './address.ts'

export interface ParseOptions {
  /** The Client ID of the app. */
  readonly account: string
}

const GROUP_CHAT = '2'
const ATTACHMENTS_MAX = 20

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
  if (content.text === '' && content.attachments.length === 0) return []
  const session = URL.parse(text(message.sessionWebhook))?.searchParams.get('session') ?? ''
  const untilMs = timeOf(message.sessionWebhookExpiredTime)
  const more = { ...(session !== '' && { session, untilMs: String(untilMs ?? 0) }), ...(staff !== '' && { staff }) }
  const isGroup = String(message.conversationType) === GROUP_CHAT
  const sentAtMs = timeOf(message.createAt)
  return [
    {
      id,
      account,
      sender,
      to: { to: isGroup ? groupAddress(conversation) : sender, replyTo: id, ...(Object.keys(more).length > 0 && { more }) },
      ...quoting(content.text, members(message.text)),
      ...(content.attachments.length > 0 && { attachments: content.attachments }),
      ...(sentAtMs !== undefined && { sentAtMs }),
    },
  ]
}

const isOwn = ({ senderId, chatbotUserId }: Members): boolean => text(senderId) !== '' && senderId === chatbotUserId

interface Content {
  readonly text: string
  readonly attachments: readonly Attachment[]
}

function contentOf(message: Members): Content {
  const content = members(message.content)
  switch (message.msgtype) {
    case 'text':
      return { text: textAt(message, 'text.content').trim(), attachments: [] }
    case 'richText':
      return richText(list(content.richText))
    case 'picture':
      return { text: '', attachments: fileOf('image', content, 'picture') }
    case 'audio': {
      // DingTalk recognises speech itself, so the recording is needed only without the words.
      const words = text(content.recognition).trim()
      return { text: words, attachments: words === '' ? fileOf('audio', content, 'recording') : [] }
    }
    case 'video':
      return { text: '', attachments: fileOf('video', content, videoName(content)) }
    case 'file':
      return { text: '', attachments: fileOf('file', content, text(content.fileName) || 'file') }
    default:
      return { text: '', attachments: [] }
  }
}

function richText(parts: readonly unknown[]): Content {
  const pieces = parts.map(members)
  const words = pieces.map((piece) => text(piece.text)).join('')
  const pictures = pieces.flatMap((piece) => (piece.type === 'picture' ? fileOf('image', piece, 'picture') : []))
  return { text: words.trim(), attachments: pictures.slice(0, ATTACHMENTS_MAX) }
}

/** `downloadCode` is exchanged for an address when the turn begins. */
function fileOf(kind: Attachment['kind'], { downloadCode, pictureDownloadCode }: Members, name: string): Attachment[] {
  const id = text(downloadCode) || text(pictureDownloadCode)
  return id === '' ? [] : [{ kind, name, source: { id } }]
}

const videoName = ({ videoType }: Members): string => (/^\w{1,8}$/.test(text(videoType)) ? `video.${videoType}` : 'video')

/** Appends the words that the sender quotes. DingTalk sends them without documenting them, so other forms are ignored. */
function quoting(words: string, { isReplyMsg, repliedMsg }: Members): Pick<Inbound, 'text' | 'quotedFrom' | 'inReplyTo'> {
  if (isReplyMsg !== true) return { text: words }
  const quoted = members(repliedMsg)
  const content = members(quoted.content)
  const said = text(quoted.content) || text(content.text) || richText(list(content.richText)).text
  const quote = said.trim() === '' ? '' : `\n\n> ${said.trim().replaceAll('\n', '\n> ')}`
  const inReplyTo = text(quoted.msgId)
  return {
    text: words + quote,
    ...(quote !== '' && { quotedFrom: words.length }),
    ...(inReplyTo !== '' && { inReplyTo }),
  }
}

const timeOf = (value: unknown): number | undefined => (Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : undefined)
