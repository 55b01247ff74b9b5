/** Turns a mail into a message for the agent, or into the reason why it is ignored. */
import { messageIds, onlyAddress } from '@sluice/mail-common'
import { decodeEntities, displayName, messageText, oneLineSubject, quotesIn, referencesOf, typedIn } from '@sluice/mail-common/reading'
import { type Address, type Inbound, namePart } from '@sluice/sdk'
import { bodyOf, NOTHING } from './body-of.ts'
import { forwardedMails } from './forwarded-mails.ts'
import { headersOf, type Mail, type MailPart } from './mail.ts'
import { attachmentsOf } from './media.ts'
import { type MailPolicy, passesDmarc, whyIgnored } from './why-ignored.ts'

export type Reading = { readonly inbound: Inbound } | { readonly ignored: string }

export function readMail(mail: Mail, policy: MailPolicy): Reading {
  const { payload } = mail
  const sender = onlyAddress(headersOf(payload, 'from'))
  const ignored = whyIgnored(mail, sender, policy)
  if (ignored !== undefined || sender === undefined) return { ignored: ignored ?? 'it has no sender' }
  const subject = oneLineSubject(headersOf(payload, 'subject')[0] ?? '')
  const attachments = attachmentsOf(payload, mail.id)
  // The daemon drops a mail of any other sender, whose long texts would take time.
  const isRead = policy.isAllowed(sender)
  const { text: found, marksAreKept } = isRead ? bodyOf(payload) : NOTHING
  const attached = isRead ? forwardedMails(payload, mail.id) : {}
  const hasAttachedMail = attached.forwarded !== undefined
  // The snippet may have the words of an attached mail.
  const body = found || (hasAttachedMail ? '' : decodeEntities(mail.snippet))
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
      typed: typedIn(subject, body, marksAreKept, hasAttachedMail),
      ...(!passesDmarc(payload) && { unverified: true }),
      ...quotesIn(text, marksAreKept, subject, hasAttachedMail),
      ...attached,
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
