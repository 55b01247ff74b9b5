/** The content of the events that the bot sends (client-server API, "Instant messaging", "Threading", "Rich replies" and "Event replacements"). */
import { writeHtml } from '@sluice/kit/styled-html'
import { withAddresses } from '@sluice/kit/styled-text'
import { type Address, AppError, type Attachment, type StyledText } from '@sluice/sdk'

/** Limits of one message. An event has at most 65,536 bytes; an encrypted edit has the text twice, and quotes take two bytes each. */
export const LIMITS = { textBytes: 8000, files: 10, fileBytes: 26_214_400 } as const

const WORD_JOINER = '\u2060'
const MSGTYPES = { image: 'm.image', audio: 'm.audio', video: 'm.video', file: 'm.file' } as const
const OCTETS = 'application/octet-stream'

/** Keeps the text from notifying the whole room in clients that do not read `m.mentions`, and removes control characters. */
export const harmless = (text: string): string => text.replaceAll(/@(?=room\b)/gi, `@${WORD_JOINER}`).replaceAll(/[\p{Cc}--[\n\t]]/gv, '')

/** Returns the relation of a message: in its thread, or as a reply to the message that it answers. */
export function relationOf({ thread, replyTo }: Address): object {
  const reply = { 'm.in_reply_to': { event_id: replyTo ?? thread } }
  if (thread !== undefined) return { 'm.relates_to': { rel_type: 'm.thread', event_id: thread, is_falling_back: true, ...reply } }
  return replyTo === undefined ? {} : { 'm.relates_to': reply }
}

/** Names the person that is answered as mentioned, and no one else. */
const mentionsOf = ({ more, replyTo }: Address): object => ({
  'm.mentions': more?.sender !== undefined && replyTo !== undefined ? { user_ids: [more.sender] } : {},
})

/** An event with a longer text and its HTML could be too large for the homeserver, so such a text goes without styles. */
const BOTH_BYTES_MAX = 20_000

/** The text, and its styles as HTML. */
function bodyOf(styled: StyledText): { readonly body: string; readonly format?: string; readonly formatted_body?: string } {
  const plain = { body: harmless(withAddresses(styled)) }
  const formatted_body = harmless(writeHtml(styled))
  const isShort = Buffer.byteLength(JSON.stringify([plain.body, formatted_body])) <= BOTH_BYTES_MAX
  return styled.styles.length > 0 && isShort ? { ...plain, format: 'org.matrix.custom.html', formatted_body } : plain
}

export const textContent = (to: Address, styled: StyledText): object => ({
  msgtype: 'm.text',
  ...bodyOf(styled),
  ...mentionsOf(to),
  ...relationOf(to),
})

/** An edit mentions no one again. */
export function editContent(message: string, styled: StyledText): object {
  const content = bodyOf(styled)
  return {
    msgtype: 'm.text',
    body: `* ${content.body}`,
    'm.mentions': {},
    'm.new_content': { msgtype: 'm.text', ...content, 'm.mentions': {} },
    'm.relates_to': { rel_type: 'm.replace', event_id: message },
  }
}

export function fileContent(to: Address, attachment: Attachment, size: number, uploaded: object): object {
  const { kind, name } = attachment
  const info = { size, mimetype: mimeOf(attachment) }
  return { msgtype: MSGTYPES[kind], body: name, filename: name, info, ...uploaded, 'm.mentions': {}, ...relationOf(to) }
}

export const reactionContent = (message: string, key: string): object => ({
  'm.relates_to': { rel_type: 'm.annotation', event_id: message, key },
})

export const mimeOf = ({ mime }: Attachment): string => (mime !== undefined && /^[\w.+-]+\/[\w.+-]+/.test(mime) ? mime : OCTETS)

/** Throws `invalid_request` for an attachment without bytes. */
export function bytesOf({ source, name }: Attachment): Uint8Array {
  if ('bytes' in source) return source.bytes
  throw new AppError('invalid_request', `The attachment ${JSON.stringify(name)} has no bytes`)
}
