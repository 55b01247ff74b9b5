/** Composes a reply and hands it to the SMTP server. */
import { mailTexts } from '@sluice/kit/styled-html'
import { sliceStyled } from '@sluice/kit/styled-text'
import { isAddress, messageIds, replySubject } from '@sluice/mail-common'
import { composeMail } from '@sluice/mail-common/composing'
import { type Address, AppError, type Host, type Outbound, type Sent } from '@sluice/sdk'
import type { Credentials } from './credentials.ts'
import type { Settings } from './settings.ts'
import { LoginRefused, Smtp } from './smtp.ts'
import { ownMessageId } from './thread.ts'

/** A first line that sets the subject. */
const SUBJECT_LINE = /^Subject:[ \t]{1,10}(\S[^\r\n]{0,500})(?:\r?\n|$)/i

/** Throws `invalid_request` if the recipient is not a mail address. No value of the address can add another header. */
export async function composeReply(
  to: Address,
  { text, styles = [], clientId, attachments = [] }: Outbound,
  settings: Settings,
  nowMs: number,
) {
  if (!isAddress(to.to)) throw new AppError('invalid_request', 'email sends only to mail addresses')
  const { address, name, defaultSubject } = settings
  const isReply = to.replyTo !== undefined || to.thread !== undefined
  const [first, given] = SUBJECT_LINE.exec(text) ?? []
  const body = first === undefined ? text : text.slice(first.length).replace(/^(?:\r?\n)+/, '')
  const known = to.more?.subject || defaultSubject
  const messageId = ownMessageId(clientId, to.thread, address)
  const [inReplyTo] = messageIds(to.replyTo ?? '')
  const references = messageIds(to.more?.references ?? '')
  const mail = {
    from: address,
    fromName: name,
    to: to.to,
    subject: given ?? (isReply ? replySubject(known) : known),
    messageId,
    inReplyTo,
    references: inReplyTo === undefined || references.includes(inReplyTo) ? references : [...references, inReplyTo],
    isReply,
    ...(styles.length === 0 ? { text: body } : mailTexts(sliceStyled({ text, styles }, text.length - body.length, text.length))),
    attachments,
  }
  return { id: messageId, mail: await composeMail(mail, nowMs) }
}

/** See `Channel.send`. */
export async function sendMail(
  { host, settings, credentials }: { readonly host: Pick<Host, 'clock'>; readonly settings: Settings; readonly credentials: Credentials },
  { to, message, signal }: { readonly to: Address; readonly message: Outbound; readonly signal: AbortSignal },
): Promise<Sent> {
  const { id, mail } = await composeReply(to, message, settings, host.clock.nowMs())
  const smtp = await connect(host, settings, credentials, signal)
  try {
    await smtp.send({ from: settings.address, to: to.to }, mail)
    return { id }
  } finally {
    smtp.quit()
  }
}

/** Logs in with another token if the first one has expired. */
export async function connect(
  { clock }: Pick<Host, 'clock'>,
  settings: Settings,
  credentials: Credentials,
  signal: AbortSignal,
): Promise<Smtp> {
  const domain = settings.address.slice(settings.address.lastIndexOf('@') + 1)
  const login = await credentials.smtpLogin(signal)
  const options = { server: settings.smtp, clock, domain }
  try {
    return await Smtp.open({ ...options, login }, signal)
  } catch (error) {
    const another = error instanceof LoginRefused && login ? await credentials.another(login, signal) : undefined
    if (!another) throw error
    return Smtp.open({ ...options, login: another }, signal)
  }
}
