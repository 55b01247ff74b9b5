/** Turns a mail that was fetched into a message for the agent, or into the reason why it is ignored. */
import { attachmentKind } from '@sluice/kit'
import { messageIds, normaliseAddress, onlyAddress } from '@sluice/mail-common'
import {
  automaticBecause,
  type Body,
  decodeText,
  displayName,
  type Headers,
  htmlBody,
  joinBodies,
  messageText,
  oneLineSubject,
  plainBody,
  quotesIn,
  referencesOf,
  typedIn,
} from '@sluice/mail-common/reading'
import { type Attachment, type Inbound, isAllowed, namePart, sha256Hex, unknownThing } from '@sluice/sdk'
import { isAuthenticated } from './authentication.ts'
import { coversSender, senderOf } from './identity.ts'
import { mediaId } from './media-id.ts'
import { attachmentParts, decodeTransfer, type Part } from './structure.ts'
import { threadOf } from './thread.ts'

export interface FetchedMail {
  readonly uidValidity: string
  readonly uid: number
  readonly header: Buffer
  readonly headers: Headers
  readonly structure: Part
  /** The parts with the text, and as many bytes of them as are read. */
  readonly texts: readonly { readonly part: Part; readonly bytes: Buffer }[]
  /** When the server received the mail. */
  readonly receivedAtMs: number
  /** Set for a mail of which the server returns only the header. */
  readonly lacksText?: true
}

export interface MailPolicy {
  /** The address of the bot. */
  readonly address: string
  readonly allow: readonly string[]
  /** The names that `Authentication-Results` must begin with; an empty text accepts a header without a name. */
  readonly authservIds: readonly string[]
}

export type Reading = { readonly inbound: Inbound } | { readonly ignored: string }

const ATTACHMENTS_MAX = 20
const NAME_CHARS_MAX = 200
/** The most characters that are decoded of all parts of one mail, which bounds the time it takes. */
const DECODED_CHARS_MAX = 2_000_000

/** Returns why a mail with these headers is ignored, and otherwise its sender. The text of an ignored mail need not be fetched. */
export function judge(
  headers: Headers,
  policy: MailPolicy,
): { readonly ignored: string } | { readonly address: string; readonly isVerified: boolean } {
  const address = onlyAddress(headers('from'))
  if (address === undefined) return { ignored: 'its From is not one plain address' }
  if (address === policy.address) return { ignored: 'it is our own' }
  const automatic = automaticBecause(headers)
  if (automatic !== undefined) return { ignored: automatic }
  if (/^multipart\/report\b/i.test(headers('content-type')[0] ?? ''))
    return { ignored: 'it is a report of the mail system (multipart/report)' }
  return { address, isVerified: isAuthenticated(headers('authentication-results'), policy.authservIds, address) }
}

export function readMail(mail: FetchedMail, policy: MailPolicy): Reading {
  const { headers } = mail
  const verdict = judge(headers, policy)
  if ('ignored' in verdict) return verdict
  const { address, isVerified } = verdict
  const sender = senderOf(address, isVerified)
  const subject = oneLineSubject(headers('subject')[0] ?? '')
  const { text: body, marksAreKept } = bodyOf(mail)
  const text = messageText({ subject, body })
  const attachments = attachmentsOf(mail)
  const hasAttachedMail = attachmentParts(mail.structure).some(({ type }) => type === 'message/rfc822' || type === 'message/global')
  const [messageId] = messageIds(headers('message-id').join(' '))
  const [inReplyTo] = messageIds(headers('in-reply-to').join(' '))
  const references = referencesOf([...headers('references'), ...headers('message-id')])
  // A mail without an id is known by its header, which is the same whenever it is read.
  const id = messageId ?? `<${sha256Hex(mail.header).slice(0, 32)}@header.invalid>`
  const thread = threadOf({ messageId: id, inReplyTo: inReplyTo ?? '', references: headers('references').join(' ') })
  return {
    inbound: {
      // A sender can write the id of another mail, so that an unverified one must not pass for it.
      id: senderOf(id, isVerified),
      account: policy.address,
      sender,
      ...namePart(displayName(headers('from'))),
      to: {
        to: replyAddress(headers, address, isVerified, policy),
        thread,
        ...(messageId !== undefined && { replyTo: messageId }),
        more: { subject, ...(references.length > 0 && { references: references.join(' ') }) },
      },
      addressed: 'direct',
      text,
      // The subject of an answer is not what its sender typed.
      typed: mail.lacksText ? '' : typedIn(inReplyTo === undefined ? subject : '', body, marksAreKept, hasAttachedMail),
      ...(!isVerified && { unverified: true }),
      ...quotesIn(text, marksAreKept, subject, hasAttachedMail),
      sentAtMs: mail.receivedAtMs,
      // An unverified mail must not answer a question that was put to the verified sender.
      ...(inReplyTo !== undefined && isVerified && { inReplyTo }),
      ...(attachments.length > 0 && { attachments }),
      ...(mail.lacksText && { things: [unknownThing('a mail whose text the mail server does not return')] }),
    },
  }
}

/** Returns the `Reply-To` address of a verified mail if the allowlist names it, else the sender, so that no mail redirects a reply. */
function replyAddress(headers: Headers, address: string, isVerified: boolean, { address: own, allow }: MailPolicy): string {
  const replyTo = onlyAddress(headers('reply-to'))
  const named = allow.filter((entry) => entry !== '*')
  const isNamed = replyTo !== undefined && replyTo !== own && isAllowed(named, replyTo, normaliseAddress, coversSender)
  return isVerified && isNamed ? replyTo : address
}

function bodyOf({ texts }: FetchedMail): Body {
  let left = DECODED_CHARS_MAX
  const read = texts.map(({ part, bytes }) => {
    const text = decodeText(decodeTransfer(bytes, part.encoding), part.charset).slice(0, left)
    left -= text.length
    return part.type === 'text/html' ? htmlBody(text) : plainBody(text, part.keepsMarks)
  })
  return joinBodies(read)
}

/** Returns the first 20 attachments, with ids that `fetchMedia` accepts. */
const attachmentsOf = ({ structure, uidValidity, uid }: FetchedMail): readonly Attachment[] =>
  attachmentParts(structure)
    .slice(0, ATTACHMENTS_MAX)
    .map((part) => ({
      kind: attachmentKind(part.type),
      name: part.name.replace(/[\p{Cc}]+/gu, ' ').slice(0, NAME_CHARS_MAX) || defaultName(part.type),
      mime: part.type,
      source: { id: mediaId({ uidValidity, uid, part: part.number, encoding: part.encoding }) },
    }))

const defaultName = (type: string): string => (type.startsWith('message/') ? 'attached-mail.eml' : 'attachment')
