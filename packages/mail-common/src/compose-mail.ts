/** Composes a complete mail (RFC 5322, RFC 2045). Its headers tell mail programs not to reply automatically. */
import { AppError, type Attachment, sha256Hex } from '@sluice/sdk'
import { encodeWord } from 'nodemailer/lib/mime-funcs'
import MimeNode from 'nodemailer/lib/mime-node'
import { isAddress } from './address.ts'
import { oneLine, REPLY_SUBJECT_CHARS_MAX } from './reply-subject.ts'

export interface MailToCompose {
  /** A plain address. The mail leaves out anything else, for services that add the sender. */
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
  /** The same text as HTML, in addition to the plain one. */
  readonly html?: string | undefined
  /** Attachments with their bytes. */
  readonly attachments?: readonly Attachment[]
}

const NAME_CHARS_MAX = 200
/** Keeps an encoded word, with its prefix and suffix, within 75 characters. */
const WORD_CHARS_MAX = 52
const MEDIA_TYPE = /^[\w!#$&.+^-]{1,60}\/[\w!#$&.+^-]{1,60}$/
const TEXT = 'text/plain; charset=utf-8'
const HTML = 'text/html; charset=utf-8'
const ALTERNATIVE = 'multipart/alternative'
const MIXED = 'multipart/mixed'

/**
 * Resolves to the bytes of the mail, which are the same for every attempt. Throws `invalid_request` if the recipient is not a mail
 * address. No value adds another header or another recipient.
 */
export async function composeMail(mail: MailToCompose, nowMs: number): Promise<Buffer> {
  const { from = '', to, subject, messageId, inReplyTo, references = [], isReply, text, html, attachments = [] } = mail
  if (!isAddress(to)) throw new AppError('invalid_request', 'The recipient is not a mail address')
  const isMixed = attachments.length > 0
  const textType = html === undefined ? TEXT : ALTERNATIVE
  const node = new MimeNode(isMixed ? MIXED : textType, {
    disableFileAccess: true,
    disableUrlAccess: true,
    baseBoundary: sha256Hex(messageId).slice(0, 32),
  })
  if (isAddress(from)) node.setHeader('From', { name: oneLine(mail.fromName ?? '', NAME_CHARS_MAX), address: from })
  node.setHeader('To', { name: '', address: to })
  node.setHeader('Subject', encoded(oneLine(subject, REPLY_SUBJECT_CHARS_MAX)))
  node.setHeader('Date', new Date(nowMs))
  node.setHeader('Message-ID', messageId)
  if (inReplyTo !== undefined) node.setHeader('In-Reply-To', inReplyTo)
  if (references.length > 0) node.setHeader('References', references.join(' '))
  node.setHeader('Auto-Submitted', isReply ? 'auto-replied' : 'auto-generated')
  const content = isMixed ? node.createChild(textType) : node
  addContent(html === undefined ? content : content.createChild(TEXT), linesOf(text))
  if (html !== undefined) addContent(content.createChild(HTML), linesOf(html))
  for (const { name, mime = '', source } of attachments) {
    if (!('bytes' in source)) throw new AppError('invalid_request', 'An attachment of a mail needs its bytes')
    const type = MEDIA_TYPE.test(mime) && !/^(?:multipart|message)\//i.test(mime) ? mime : 'application/octet-stream'
    const filename = oneLine(name.toWellFormed(), NAME_CHARS_MAX) || 'attachment'
    addContent(node.createChild(type, { filename }), Buffer.from(source.bytes.buffer, source.bytes.byteOffset, source.bytes.byteLength))
  }
  const built = await node.build()
  // The library leaves out a header without a value.
  return subject.trim() === '' ? Buffer.concat([Buffer.from('Subject: \r\n'), built]) : built
}

const linesOf = (text: string): Buffer => Buffer.from(text.replace(/\r\n?|\n/g, '\r\n'))

/** Content in base64 has short lines, none of which can be a boundary, and arrives byte for byte. */
function addContent(node: MimeNode, content: Buffer): void {
  node.setHeader('Content-Transfer-Encoding', 'base64')
  node.setContent(content)
}

/** The library leaves a text that looks encoded as it is, and a reader would decode it. */
const encoded = (text: string): string | { prepared: true; foldLines: true; value: string } =>
  text.includes('=?')
    ? { prepared: true, foldLines: true, value: encodeWord(text.toWellFormed(), 'B', WORD_CHARS_MAX) }
    : text.toWellFormed()
