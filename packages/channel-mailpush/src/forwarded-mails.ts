/** Reads the mails that a mail has as parts, which somebody else wrote and the sender passes on. */
import { onlyAddress } from '@sluice/mail-common'
import { displayName, messageText, oneLineSubject } from '@sluice/mail-common/reading'
import { forwardedPart, type Inbound } from '@sluice/sdk'
import { ATTACHED_MAIL, bodyOf } from './body-of.ts'
import { headersOf, type MailPart } from './mail.ts'
import { attachmentsOf } from './media.ts'

const MAILS_MAX = 20
/** The most characters that are decoded of all attached mails: as many as a forward keeps beside the lines with writers and subjects. */
const DECODED_CHARS_MAX = 80_000

/**
 * Returns the words and files of attached mails, also of mails that are attached to them, each with its writer and its subject; no member
 * without any. The member `from` is set if one person wrote all of them.
 */
export function forwardedMails(payload: MailPart, mailId: string): Pick<Inbound, 'forwarded'> {
  const all = mailsIn(payload)
  const mails = all.slice(0, MAILS_MAX)
  const [first] = mails
  if (!first) return {}
  const left = { chars: DECODED_CHARS_MAX }
  const texts = mails.map((mail) => `From: ${writerOf(mail)}\n${textOf(mail, left)}`)
  const more = all.length - mails.length
  return forwardedPart({
    ...(mails.every((mail) => writerOf(mail) === writerOf(first)) && { author: authorOf(first) }),
    text: [...texts, ...(more > 0 ? [`[${more} more attached mails are left out.]`] : [])].join('\n\n'),
    attachments: mails.flatMap((mail) => attachmentsOf(mail, mailId)),
  })
}

/** Returns the first part of each attached mail, which has its headers, and behind it those of the mails that are attached to it. */
const mailsIn = ({ mimeType, parts }: MailPart): readonly MailPart[] =>
  mimeType.toLowerCase() === ATTACHED_MAIL ? parts.slice(0, 1).flatMap((mail) => [mail, ...mailsIn(mail)]) : parts.flatMap(mailsIn)

const authorOf = (mail: MailPart): { readonly name: string; readonly id: string } => {
  const from = headersOf(mail, 'from')
  return { name: displayName(from), id: onlyAddress(from) ?? '' }
}

function writerOf(mail: MailPart): string {
  const { name, id } = authorOf(mail)
  return [name, id === '' ? '' : `<${id}>`].filter((part) => part !== '').join(' ') || 'an unknown writer'
}

function textOf(mail: MailPart, left: { chars: number }): string {
  const isLeft = left.chars > 0
  const body = isLeft ? bodyOf(mail, left).text : ''
  const cut = left.chars > 0 ? '' : '[The rest of this mail is left out.]'
  const words = messageText({ subject: oneLineSubject(headersOf(mail, 'subject')[0] ?? ''), body })
  return [words, cut].filter((part) => part !== '').join('\n\n')
}
