/** The parts that the mail channels share for sending: addresses, subjects and access tokens. */

export { AccessToken, type AccessTokenOptions, isTokenRefused, tokenRefused } from './access-token.ts'
export { coversAddress, isAddress, isDomain, normaliseAddress, onlyAddress } from './address.ts'
export { messageIds } from './message-ids.ts'
export { replySubject } from './reply-subject.ts'
