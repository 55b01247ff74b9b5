/** Reads the text of a mail: its plain text if there is one, else the text of its HTML. */
import { decodeText } from './encoded-words.ts'
import { htmlToText } from './html-to-text.ts'
import { headersOf, type MailPart } from './mail.ts'

/** The most characters that are decoded of all parts of one mail, which bounds the time it takes. */
const CHARS_MAX = 2_000_000

/** Returns the text of a part and its inner parts; empty if there is none. `left` counts the characters that may still be decoded. */
export function textOf(part: MailPart, left = { chars: CHARS_MAX }): string {
  const { mimeType, parts, body } = part
  const type = mimeType.toLowerCase()
  if (parts.length > 0) {
    // A forwarded mail is not the sender's own text.
    if (type === 'message/rfc822') return ''
    const texts = parts.map((inner) => ({ type: inner.mimeType.toLowerCase(), text: textOf(inner, left) })).filter(({ text }) => text)
    if (type !== 'multipart/alternative') return texts.map(({ text }) => text).join('\n\n')
    return (texts.find((inner) => inner.type === 'text/plain') ?? texts.at(-1))?.text ?? ''
  }
  if (body.attachmentId !== undefined || !body.data) return ''
  if (type === 'text/plain') return decodeBody(part, left).replace(/\r\n?/g, '\n').trim()
  return type === 'text/html' ? htmlToText(decodeBody(part, left)) : ''
}

function decodeBody(part: MailPart, left: { chars: number }): string {
  const [type = ''] = headersOf(part, 'content-type')
  const charset = /;\s*charset\s*=\s*"?([\w.:-]{1,40})/i.exec(type)?.[1] ?? 'utf-8'
  const text = decodeText(Buffer.from(part.body.data ?? '', 'base64'), charset).slice(0, left.chars)
  left.chars -= text.length
  return text
}
