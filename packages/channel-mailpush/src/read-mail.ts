/** A mail to a message for the agent, or to the reason why it is none. */
import type { Address, Inbound } from '@sluice/sdk'
import { onlyAddress } from './address.ts'
import { decodeWords } from './encoded-words.ts'
import { decodeEntities } from './entities.ts'
import { headersOf, type Mail, type MailPart } from './mail.ts'
import { attachmentsOf, textOf } from './mail-content.ts'
import { messageIds } from './message-ids.ts'
import { type Circumstances, whyIgnored } from './why-ignored.ts'

export interface Reader extends Omit<Circumstances, 'sender'> {
  /** Whether the allowlist covers an address in small letters. */
  isAllowed(address: string): boolean
}

export type Reading = { readonly inbound: Inbound } | { readonly ignored: string }

const TEXT_CHARS_MAX = 200_000
const SUBJECT_CHARS_MAX = 500
/** The first of a thread and the latest: what mail programs need to keep it together. */
const REFERENCES_MAX = 20

export function readMail(mail: Mail, { mailbox, mustBeProved, isAllowed }: Reader): Reading {
  const { payload } = mail
  const sender = onlyAddress(headersOf(payload, 'from'))
  const ignored = whyIgnored(mail, { sender, mailbox, mustBeProved })
  if (ignored !== undefined || sender === undefined) return { ignored: ignored ?? 'it has no sender' }
  const subject = subjectOf(mail)
  const attachments = attachmentsOf(payload, mail.id)
  return {
    inbound: {
      id: mail.id,
      account: mailbox,
      sender,
      to: { ...threadOf(mail, { mailbox, subject }), to: recipientOf(payload, { sender, mailbox, isAllowed }) },
      text: cut(`Subject: ${subject || '(none)'}\n\n${textOf(payload) || decodeEntities(mail.snippet)}`.trimEnd()),
      ...(mail.internalDate !== undefined && { sentAtMs: Number(mail.internalDate) }),
      ...(attachments.length > 0 && { attachments }),
    },
  }
}

/** Where the sender wants answers, unless that is nobody we talk to: who forges a mail must not be told what is found for it. */
function recipientOf(
  payload: MailPart,
  { sender, mailbox, isAllowed }: Pick<Reader, 'mailbox' | 'isAllowed'> & { sender: string },
): string {
  const wanted = onlyAddress(headersOf(payload, 'reply-to'))
  return wanted !== undefined && wanted !== mailbox && isAllowed(wanted) ? wanted : sender
}

/** What a mail that answers has to name. */
function threadOf({ threadId, payload }: Mail, { mailbox, subject }: Record<'mailbox' | 'subject', string>): Omit<Address, 'to'> {
  const [messageId] = messageIds(headersOf(payload, 'message-id').join(' '))
  const references = messageIds([...headersOf(payload, 'references'), ...headersOf(payload, 'message-id')].join(' '))
  const kept = references.length > REFERENCES_MAX ? [...references.slice(0, 1), ...references.slice(1 - REFERENCES_MAX)] : references
  return {
    thread: threadId,
    ...(messageId !== undefined && { replyTo: messageId }),
    more: { subject, from: mailbox, ...(kept.length > 0 && { references: kept.join(' ') }) },
  }
}

const subjectOf = ({ payload }: Mail): string => {
  const [value = ''] = headersOf(payload, 'subject')
  return [
    ...decodeWords(value)
      .replace(/[\p{Cc}\s]+/gu, ' ')
      .trim(),
  ]
    .slice(0, SUBJECT_CHARS_MAX)
    .join('')
}

const cut = (text: string): string => {
  if (text.length <= TEXT_CHARS_MAX) return text
  return `${text.slice(0, TEXT_CHARS_MAX).replace(/[\ud800-\udbff]$/, '')}\n\n[The rest of this mail is left out.]`
}
