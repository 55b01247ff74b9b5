/** The parts that the mail channels share for sending: addresses, encoded words, composing and access tokens. */

export { AccessToken, type AccessTokenOptions, isTokenRefused, tokenRefused } from './access-token.ts'
export { coversAddress, isAddress, isDomain, normaliseAddress, onlyAddress } from './address.ts'
export { composeMail, type MailToCompose, replySubject } from './compose-mail.ts'
export { messageIds } from './message-ids.ts'
