/** What is in a mail: its text, read as a person would, and what is attached. */
import type { Attachment } from '@sluice/sdk'
import { decodeText } from './encoded-words.ts'
import { htmlToText } from './html-to-text.ts'
import { headersOf, type MailPart } from './mail.ts'

const ATTACHMENTS_MAX = 20
const NAME_CHARS_MAX = 200
/** Of one mail: more than anybody reads, and little enough to be read at once. */
const CHARS_MAX = 2_000_000

/** Plain text where there is some, else that of the HTML; empty if there is neither. `left` is how much of it may still be read. */
export function textOf(part: MailPart, left = { chars: CHARS_MAX }): string {
  const { mimeType, parts, body } = part
  const type = mimeType.toLowerCase()
  if (parts.length > 0) {
    if (type === 'message/rfc822') return ''
    const texts = parts.map((inner) => ({ type: inner.mimeType.toLowerCase(), text: textOf(inner, left) })).filter(({ text }) => text)
    if (type !== 'multipart/alternative') return texts.map(({ text }) => text).join('\n\n')
    return (texts.find((inner) => inner.type === 'text/plain') ?? texts.at(-1))?.text ?? ''
  }
  if (body.attachmentId !== undefined || !body.data) return ''
  if (type === 'text/plain') return dataOf(part, left).replace(/\r\n?/g, '\n').trim()
  return type === 'text/html' ? htmlToText(dataOf(part, left)) : ''
}

/** With ids that `fetchMedia` takes; in the order of the mail. */
export function attachmentsOf(payload: MailPart, mailId: string): Attachment[] {
  const found: Attachment[] = []
  const visit = ({ filename, mimeType, body, parts }: MailPart): void => {
    if (found.length >= ATTACHMENTS_MAX) return
    if (body.attachmentId !== undefined) {
      found.push({
        kind: kindOf(mimeType),
        name: filename.slice(0, NAME_CHARS_MAX) || 'attachment',
        ...(mimeType && { mime: mimeType.toLowerCase() }),
        source: { id: `${mailId}/${body.attachmentId}` },
      })
    }
    for (const inner of parts) visit(inner)
  }
  visit(payload)
  return found
}

const dataOf = (part: MailPart, left: { chars: number }): string => {
  const [type = ''] = headersOf(part, 'content-type')
  const charset = /;\s*charset\s*=\s*"?([\w.:-]{1,40})/i.exec(type)?.[1] ?? 'utf-8'
  const text = decodeText(Buffer.from(part.body.data ?? '', 'base64'), charset).slice(0, left.chars)
  left.chars -= text.length
  return text
}

const kindOf = (mimeType: string): Attachment['kind'] => {
  const [top = ''] = mimeType.toLowerCase().split('/')
  return top === 'image' || top === 'audio' || top === 'video' ? top : 'file'
}
