/** The parts of a message for the agent that both mail channels make in the same way: the subject line, the references, the length. */
import { decodeWords } from './encoded-words.ts'
import { messageIds } from './message-ids.ts'
import { oneLine } from './reply-subject.ts'

const TEXT_CHARS_MAX = 200_000
/** The first message of a thread and the latest ones, which mail programs need to keep the thread together. */
const REFERENCES_MAX = 20

export interface MailText {
  readonly subject: string
  readonly body: string
}

/** Returns the text of a message: the subject, an empty line and the body, cut to a length that a model can read. */
export const messageText = ({ subject, body }: MailText): string => shortened(`Subject: ${subject || '(none)'}\n\n${body}`.trimEnd())

/** Returns the text, cut after 200,000 characters with a note. */
export function shortened(text: string): string {
  if (text.length <= TEXT_CHARS_MAX) return text
  return `${text.slice(0, TEXT_CHARS_MAX).replace(/[\ud800-\udbff]$/, '')}\n\n[The rest of this mail is left out.]`
}

/** Decodes the value of a `Subject` header to one line of at most 500 characters. */
export const oneLineSubject = (value: string): string => oneLine(decodeWords(value))

/** Returns the references of a reply to a mail with these `References` and `Message-ID` headers: at most 20, the first one kept. */
export function referencesOf(headers: readonly string[]): readonly string[] {
  const all = messageIds(headers.join(' '))
  return all.length > REFERENCES_MAX ? [...all.slice(0, 1), ...all.slice(1 - REFERENCES_MAX)] : all
}
