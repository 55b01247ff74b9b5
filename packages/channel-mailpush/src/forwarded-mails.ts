/** Reads the mails that a mail has as parts, which somebody else wrote and the sender passes on. */
import { onlyAddress } from '@sluice/mail-common'
import { displayName, messageText, oneLineSubject } from '@sluice/mail-common/reading'
import { forwardedPart, type Inbound } from '@sluice/sdk'
import { ATTACHED_MAIL, bodyOf } from './body-of.ts'
import { headersOf, type MailPart } from './mail.ts'
import { attachmentsOf } from './media.ts'

const MAILS_MAX = 20
/** The most characters that are decoded of all attached mails, which is about as many as a forward keeps. */
const DECODED_CHARS_MAX = 100_000

/** Returns the words and files of attached mails, with their subjects; no member without any. */
export function forwardedMails(payload: MailPart, mailId: string): Pick<Inbound, 'forwarded'> {
  const mails = mailsIn(payload).slice(0, MAILS_MAX)
  const [first] = mails
  if (!first) return {}
  const left = { chars: DECODED_CHARS_MAX }
  const [from] = [headersOf(first, 'from')]
  return forwardedPart({
    author: { name: displayName(from), id: onlyAddress(from) ?? '' },
    text: mails
      .map((mail) => messageText({ subject: oneLineSubject(headersOf(mail, 'subject')[0] ?? ''), body: bodyOf(mail, left).text }))
      .join('\n\n'),
    attachments: mails.flatMap((mail) => attachmentsOf(mail, mailId)),
  })
}

/** Returns the first part of each attached mail, which has its headers. */
const mailsIn = ({ mimeType, parts }: MailPart): readonly MailPart[] =>
  mimeType.toLowerCase() === ATTACHED_MAIL ? parts.slice(0, 1) : parts.flatMap(mailsIn)
