/** Turns a mail into a message for the agent, or into the reason why it is ignored. */
import { messageIds, onlyAddress } from '@sluice/mail-common'
import {
  type Body,
  decodeEntities,
  decodeText,
  displayName,
  htmlBody,
  joinBodies,
  keepsMarks,
  messageText,
  oneLineSubject,
  plainBody,
  quotesIn,
  referencesOf,
  typedIn,
} from '@sluice/mail-common/reading'
import { type Address, type Inbound, namePart } from '@sluice/sdk'
import { headersOf, type Mail, type MailPart } from './mail.ts'
import { attachmentsOf } from './media.ts'
import { type MailPolicy, passesDmarc, whyIgnored } from './why-ignored.ts'

export type Reading = { readonly inbound: Inbound } | { readonly ignored: string }

/** The most characters that are decoded of all parts of one mail, which bounds the time it takes. */
const DECODED_CHARS_MAX = 2_000_000

const NOTHING: Body = { text: '', marksAreKept: false }
const FORMAT = /;\s*format\s*=\s*"?(\w{1,20})/i
const DELSP = /;\s*delsp\s*=\s*"?(\w{1,20})/i

export function readMail(mail: Mail, policy: MailPolicy): Reading {
  const { payload } = mail
  const sender = onlyAddress(headersOf(payload, 'from'))
  const ignored = whyIgnored(mail, sender, policy)
  if (ignored !== undefined || sender === undefined) return { ignored: ignored ?? 'it has no sender' }
  const subject = oneLineSubject(headersOf(payload, 'subject')[0] ?? '')
  const attachments = attachmentsOf(payload, mail.id)
  const { text: found, marksAreKept } = bodyOf(payload)
  const body = found || decodeEntities(mail.snippet)
  const text = messageText({ subject, body })
  return {
    inbound: {
      id: mail.id,
      account: policy.ownAddress,
      sender,
      ...namePart(displayName(headersOf(payload, 'from'))),
      to: { ...threadOf(mail, policy.ownAddress, subject), to: replyAddress(payload, sender, policy) },
      addressed: 'direct',
      text,
      typed: typedIn(subject, body, marksAreKept),
      ...(!passesDmarc(payload) && { unverified: true }),
      ...quotesIn(text, marksAreKept),
      ...(mail.internalDate !== undefined && { sentAtMs: Number(mail.internalDate) }),
      ...(attachments.length > 0 && { attachments }),
    },
  }
}

/** Returns the `Reply-To` address if the allowlist covers it, else the sender, so that a forged mail cannot redirect the reply. */
function replyAddress(payload: MailPart, sender: string, { ownAddress, isAllowed }: MailPolicy): string {
  const replyTo = onlyAddress(headersOf(payload, 'reply-to'))
  return replyTo !== undefined && replyTo !== ownAddress && isAllowed(replyTo) ? replyTo : sender
}

/** Returns what a reply needs to stay in the thread of the mail. */
function threadOf({ threadId, payload }: Mail, ownAddress: string, subject: string): Omit<Address, 'to'> {
  const [messageId] = messageIds(headersOf(payload, 'message-id').join(' '))
  const references = referencesOf([...headersOf(payload, 'references'), ...headersOf(payload, 'message-id')])
  return {
    thread: threadId,
    ...(messageId !== undefined && { replyTo: messageId }),
    more: { subject, from: ownAddress, ...(references.length > 0 && { references: references.join(' ') }) },
  }
}

/**
 * Returns the text of a part and its inner parts: the plain text if there is one, else that of the HTML. `left` counts the characters
 * that may still be decoded.
 */
function bodyOf(part: MailPart, left = { chars: DECODED_CHARS_MAX }): Body {
  const { mimeType, parts, body } = part
  const type = mimeType.toLowerCase()
  if (parts.length > 0) {
    // A forwarded mail is not the sender's own text.
    if (type === 'message/rfc822') return NOTHING
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
  const charset = /;\s*charset\s*=\s*"?([\w.:-]{1,40})/i.exec(contentType)?.[1] ?? 'utf-8'
  const text = decodeText(Buffer.from(part.body.data ?? '', 'base64'), charset).slice(0, left.chars)
  left.chars -= text.length
  return text
}
