/** The parts that the mail channels share for reading mails: header texts, text of HTML, quotes and automatic mails. */

export { automaticBecause, type Headers } from './automatic-mail.ts'
export { type Body, htmlBody, joinBodies, plainBody } from './body.ts'
export { displayName } from './display-name.ts'
export { decodeText, decodeWords } from './encoded-words.ts'
export { decodeEntities, htmlToText } from './html-to-text.ts'
export { type MailText, messageText, oneLineSubject, referencesOf, shortened } from './message-text.ts'
export { keepsMarks, ownBelow, quotesIn, type Span } from './own-below.ts'
export { quoteStart } from './quote-start.ts'
export { typedIn } from './typed.ts'
