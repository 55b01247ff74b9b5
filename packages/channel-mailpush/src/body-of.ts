/** Reads the text of a mail from its parts. */
import { type Body, decodeText, htmlBody, joinBodies, keepsMarks, plainBody } from '@sluice/mail-common/reading'
import { headersOf, type MailPart } from './mail.ts'

/** The most characters that are decoded of all parts of one mail, which bounds the time it takes. */
const DECODED_CHARS_MAX = 2_000_000

/** The type of a part that is a whole mail. */
export const ATTACHED_MAIL = 'message/rfc822'
export const NOTHING: Body = { text: '', marksAreKept: false }
const FORMAT = /;\s*format\s*=\s*"?(\w{1,20})/i
const DELSP = /;\s*delsp\s*=\s*"?(\w{1,20})/i

/**
 * Returns the text of a part and its inner parts: the plain text if there is one, else that of the HTML. `left` counts the characters
 * that may still be decoded.
 */
export function bodyOf(part: MailPart, left = { chars: DECODED_CHARS_MAX }): Body {
  const { mimeType, parts, body } = part
  const type = mimeType.toLowerCase()
  if (parts.length > 0) {
    // A forwarded mail is not the sender's own text.
    if (type === ATTACHED_MAIL) return NOTHING
    const bodies = parts.map((inner) => ({ type: inner.mimeType.toLowerCase(), ...bodyOf(inner, left) })).filter(({ text }) => text)
    if (type !== 'multipart/alternative') return joinBodies(bodies)
    return bodies.find((inner) => inner.type === 'text/plain') ?? bodies.at(-1) ?? NOTHING
  }
  if (body.attachmentId !== undefined || !body.data) return NOTHING
  const [contentType = ''] = headersOf(part, 'content-type')
  const [format, delsp] = [FORMAT, DELSP].map((parameter) => parameter.exec(contentType)?.[1])
  if (type === 'text/plain') return plainBody(decodeBody(part, contentType, left), keepsMarks({ format, delsp }))
  return type === 'text/html' ? htmlBody(decodeBody(part, contentType, left)) : NOTHING
}

function decodeBody(part: MailPart, contentType: string, left: { chars: number }): string {
  if (left.chars <= 0) return ''
  const charset = /;\s*charset\s*=\s*"?([\w.:-]{1,40})/i.exec(contentType)?.[1] ?? 'utf-8'
  const text = decodeText(Buffer.from(part.body.data ?? '', 'base64'), charset).slice(0, left.chars)
  left.chars -= text.length
  return text
}
