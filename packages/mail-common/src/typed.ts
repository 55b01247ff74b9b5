/** Finds what the sender of a mail typed: the text above the quote and the signature. */
import { quoteStart } from './quote-start.ts'

/** Longer than an answer to an approval with its feedback. */
const TYPED_CHARS_MAX = 5000
/** The line before a signature; see RFC 3676, section 4.3. Some programs drop the space at its end. */
const SIGNATURE = /^-- ?$/m

/** Returns the subject, without the marks of replies, for a mail whose sender typed no text. */
export function typedIn(subject: string, body: string): string {
  const ends = [quoteStart(body), body.search(SIGNATURE)].filter((end) => end >= 0)
  const typed = body.slice(0, Math.min(TYPED_CHARS_MAX, ...ends)).trim()
  return typed || subject.replace(/^(?:(?:re|aw|sv|antw)\s{0,5}:\s{0,5}){1,20}/i, '')
}
