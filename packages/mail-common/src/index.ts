/** The parts that the mail channels share: addresses, encoded words, text of HTML, quotes, composing and access tokens. */

export { AccessToken, type AccessTokenOptions, isTokenRefused, tokenRefused } from './access-token.ts'
export { coversAddress, isAddress, isDomain, normaliseAddress, onlyAddress } from './address.ts'
export { automaticBecause, type Headers } from './automatic-mail.ts'
export { composeMail, type MailToCompose, replySubject } from './compose-mail.ts'
export { decodeText, decodeWords, encodeWords } from './encoded-words.ts'
export { decodeEntities, htmlToText } from './html-to-text.ts'
export { messageIds } from './message-ids.ts'
export { type MailText, messageText, oneLineSubject, referencesOf, shortened } from './message-text.ts'
export { quoteStart } from './quote-start.ts'
export { typedIn } from './typed.ts'
