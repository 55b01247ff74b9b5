/** Composes a reply as a complete mail (RFC 5322). Its headers tell mail programs not to reply automatically. */
import { type Address, AppError, type Outbound, sha256Hex } from '@sluice/sdk'
import { isAddress } from './address.ts'
import { encodeWords } from './encoded-words.ts'
import { messageIds } from './mail.ts'

const SUBJECT_CHARS_MAX = 500

/** Throws `invalid_request` if the recipient is not a mail address. No value of the address can add another header. */
export function composeMail(to: Address, { text, clientId }: Outbound, nowMs: number): string {
  if (!isAddress(to.to)) throw new AppError('invalid_request', 'mailpush sends only to mail addresses')
  const from = to.more?.from ?? ''
  const references = messageIds(to.more?.references ?? '')
  const [inReplyTo] = messageIds(to.replyTo ?? '')
  const subject = oneLine(to.more?.subject ?? '')
  const isReply = to.thread !== undefined
  return [
    ...(isAddress(from) ? [`From: ${from}`] : []),
    `To: ${to.to}`,
    `Subject: ${encodeWords(isReply ? replySubject(subject) : subject)}`,
    `Date: ${new Date(nowMs).toUTCString().replace('GMT', '+0000')}`,
    `Message-ID: ${messageId(clientId, from)}`,
    ...(inReplyTo === undefined ? [] : [`In-Reply-To: ${inReplyTo}`]),
    ...(references.length === 0 ? [] : [`References: ${references.join('\r\n ')}`]),
    `Auto-Submitted: ${isReply ? 'auto-replied' : 'auto-generated'}`,
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: base64',
    '',
    encodeBody(text),
  ].join('\r\n')
}

/** Returns the same id for every attempt to send a message. */
function messageId(clientId: string, from: string): string {
  const domain = /@([\w.-]+)$/.exec(from)?.[1] ?? 'mailpush.invalid'
  return `<${sha256Hex(clientId).slice(0, 32)}@${domain}>`
}

const oneLine = (text: string): string => [...text.replace(/[\p{Cc}\s]+/gu, ' ').trim()].slice(0, SUBJECT_CHARS_MAX).join('')

/** Adds `Re:`, or reduces several of them to one. */
const replySubject = (subject: string): string => `Re: ${subject.replace(/^(?:re\s*:\s*)+/i, '')}`.trim()

function encodeBody(text: string): string {
  const base64 = Buffer.from(text.replace(/\r\n?|\n/g, '\r\n')).toString('base64')
  // RFC 2045 allows 76 characters a line.
  return base64.replace(/.{76}/g, '$&\r\n')
}
