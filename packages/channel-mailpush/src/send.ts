/** Composes a reply as a complete mail (RFC 5322) for the mail API. */
import { mailTexts } from '@sluice/kit/styled-html'
import { isAddress, messageIds, replySubject } from '@sluice/mail-common'
import { composeMail } from '@sluice/mail-common/composing'
import { type Address, AppError, type Outbound, sha256Hex } from '@sluice/sdk'

/** Throws `invalid_request` if the recipient is not a mail address. No value of the address can add another header. */
export async function composeReply(to: Address, { text, styles, attachments = [], clientId }: Outbound, nowMs: number): Promise<Buffer> {
  if (!isAddress(to.to)) throw new AppError('invalid_request', 'mailpush sends only to mail addresses')
  const { from = '', subject = '' } = to.more ?? {}
  const isReply = to.thread !== undefined
  const mail = {
    from,
    to: to.to,
    subject: isReply ? replySubject(subject) : subject,
    messageId: messageId(clientId, from),
    inReplyTo: messageIds(to.replyTo ?? '')[0],
    references: messageIds(to.more?.references ?? ''),
    isReply,
    ...mailTexts({ text, styles: styles ?? [] }),
    attachments,
  }
  return composeMail(mail, nowMs)
}

/** Returns the same id for every attempt to send a message. */
function messageId(clientId: string, from: string): string {
  const domain = /@([\w.-]+)$/.exec(from)?.[1] ?? 'mailpush.invalid'
  return `<${sha256Hex(clientId).slice(0, 32)}@${domain}>`
}
