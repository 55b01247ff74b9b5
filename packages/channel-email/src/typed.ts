/** Finds what the sender of a mail typed, above the quote and the signature. */
import { quoteStart } from '@sluice/mail-common/reading'

const TYPED_CHARS_MAX = 5000
/** The line before a signature (RFC 3676, section 4.3), and the ones that mail programs of phones write. */
const SIGNATURE = /^(?:-- ?|(?:Sent from my|Von meinem|Envoyé de mon|Enviado desde mi|Inviato da) .{1,60})$/m

/** `body` is the text without the subject. A mail that consists of its subject says what the subject says. */
export function typedIn(subject: string, body: string): string {
  const ends = [quoteStart(body), body.search(SIGNATURE)].filter((at) => at >= 0)
  const typed = body.slice(0, Math.min(TYPED_CHARS_MAX, ...ends)).trim()
  return typed || subject.replace(/^(?:(?:re|aw|sv|antw)\s{0,5}:\s{0,5}){1,20}/i, '')
}
