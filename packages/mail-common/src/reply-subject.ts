/** Subjects of one line. */

const SUBJECT_CHARS_MAX = 500
/** A subject with `Re:`. */
export const REPLY_SUBJECT_CHARS_MAX = SUBJECT_CHARS_MAX + 10

/** Returns the text in one line, without control characters, of at most this many characters. */
export const oneLine = (text: string, charsMax = SUBJECT_CHARS_MAX): string =>
  [...text.replace(/[\p{Cc}\s]+/gu, ' ').trim()].slice(0, charsMax).join('')

/** Adds `Re:` to the subject of a mail, or reduces several of them to one. */
export const replySubject = (subject: string): string => `Re: ${oneLine(subject).replace(/^(?:re\s*:\s*)+/i, '')}`.trim()
