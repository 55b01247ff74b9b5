/** Composes a complete mail (RFC 5322, RFC 2045). Its headers tell mail programs not to reply automatically. */
import { AppError, type Attachment } from '@sluice/sdk'
import { isAddress } from './address.ts'
import { encodeWords } from './encoded-words.ts'

export interface MailToCompose {
  /** A plain address. Left out of the mail if it is none, for services that add it. */
  readonly from?: string | undefined
  /** The name before the address of the sender. */
  readonly fromName?: string | undefined
  /** A plain address. */
  readonly to: string
  readonly subject: string
  /** With its angle brackets. */
  readonly messageId: string
  readonly inReplyTo?: string | undefined
  readonly references?: readonly string[]
  /** Whether it answers a mail, or is sent for another reason. */
  readonly isReply: boolean
  readonly text: string
  /** Attachments with their bytes. */
  readonly attachments?: readonly Attachment[]
}

const SUBJECT_CHARS_MAX = 500
/** A subject with `Re:`. */
const LINE_CHARS_MAX = SUBJECT_CHARS_MAX + 10
const NAME_CHARS_MAX = 200
/** RFC 2045 allows 76 characters a line. 57 bytes make 76 characters of base64. */
const BASE64_LINE_BYTES = 57
const TOKEN = /^[\w!#$&.+^-]{1,60}\/[\w!#$&.+^-]{1,60}$/

/** Throws `invalid_request` if the recipient is not a mail address. No value adds another header or another recipient. */
export function composeMail(mail: MailToCompose, nowMs: number): string {
  const { from = '', to, subject, messageId, inReplyTo, references = [], isReply, text, attachments = [] } = mail
  if (!isAddress(to)) throw new AppError('invalid_request', 'The recipient is not a mail address')
  return [
    ...(isAddress(from) ? [`From: ${withName(mail.fromName, from)}`] : []),
    `To: ${to}`,
    `Subject: ${encodeWords(oneLine(subject, LINE_CHARS_MAX))}`,
    `Date: ${new Date(nowMs).toUTCString().replace('GMT', '+0000')}`,
    `Message-ID: ${messageId}`,
    ...(inReplyTo === undefined ? [] : [`In-Reply-To: ${inReplyTo}`]),
    ...(references.length === 0 ? [] : [`References: ${references.join('\r\n ')}`]),
    `Auto-Submitted: ${isReply ? 'auto-replied' : 'auto-generated'}`,
    'MIME-Version: 1.0',
    ...(attachments.length === 0 ? textPart(text) : mixed(messageId, text, attachments)),
  ].join('\r\n')
}

const withName = (name: string | undefined, address: string): string => (name ? `${phrase(oneLine(name))} <${address}>` : address)

/** A phrase of RFC 5322: an encoded word, or a quoted string. */
const phrase = (text: string): string => (/^[\x20-\x7e]*$/.test(text) ? `"${text.replace(/["\\]/g, '\\$&')}"` : encodeWords(text))

const textPart = (text: string): readonly string[] => [
  'Content-Type: text/plain; charset=utf-8',
  'Content-Transfer-Encoding: base64',
  '',
  base64Lines(Buffer.from(text.replace(/\r\n?|\n/g, '\r\n'))),
]

/** The parts are base64, so that no line of them can be the boundary. */
function mixed(messageId: string, text: string, attachments: readonly Attachment[]): readonly string[] {
  const boundary = `=_${messageId.replace(/[^\da-f]/gi, '').slice(0, 32)}`
  const parts = [textPart(text), ...attachments.map(attachmentPart)]
  return [
    `Content-Type: multipart/mixed; boundary="${boundary}"`,
    '',
    ...parts.flatMap((part) => [`--${boundary}`, ...part]),
    `--${boundary}--`,
    '',
  ]
}

function attachmentPart({ name, mime = '', source }: Attachment): readonly string[] {
  if (!('bytes' in source)) throw new AppError('invalid_request', 'An attachment of a mail needs its bytes')
  return [
    `Content-Type: ${TOKEN.test(mime) && !/^(?:multipart|message)\//i.test(mime) ? mime : 'application/octet-stream'}`,
    `Content-Disposition: attachment;\r\n ${fileName(oneLine(name).slice(0, NAME_CHARS_MAX) || 'attachment')}`,
    'Content-Transfer-Encoding: base64',
    '',
    base64Lines(source.bytes),
  ]
}

/** The parameter of RFC 2183, in the form of RFC 2231 if the name is not plain ASCII. */
const fileName = (name: string): string =>
  /^[\x20-\x7e]{1,60}$/.test(name) ? `filename="${name.replace(/["\\]/g, '\\$&')}"` : `filename*=UTF-8''${percentEncoded(name)}`

/** Percent signs for all but the attribute characters of RFC 2231. */
const percentEncoded = (name: string): string =>
  Array.from(Buffer.from(name.toWellFormed()), (byte) => {
    const character = String.fromCharCode(byte)
    return /[A-Za-z\d._-]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }).join('')

const oneLine = (text: string, charsMax = SUBJECT_CHARS_MAX): string =>
  [...text.replace(/[\p{Cc}\s]+/gu, ' ').trim()].slice(0, charsMax).join('')

/** Adds `Re:` to the subject of a mail, or reduces several of them to one. */
export const replySubject = (subject: string): string => `Re: ${oneLine(subject).replace(/^(?:re\s*:\s*)+/i, '')}`.trim()

function base64Lines(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const lines: string[] = []
  for (let at = 0; at < buffer.length; at += BASE64_LINE_BYTES) lines.push(buffer.toString('base64', at, at + BASE64_LINE_BYTES))
  return lines.join('\r\n')
}
