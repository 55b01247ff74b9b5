/** The text of a mail, made of its parts. */
import { htmlToText } from './html-to-text.ts'

export interface Body {
  readonly text: string
  /** Whether each line of a quote has its mark; see `keepsMarks`. */
  readonly marksAreKept: boolean
}

/** A carriage return alone. With one, the words of others could begin a line that has no mark. */
const LONE_RETURN = /\r(?!\n)/

/** Returns the text of a part of plain text, with a line feed at the end of each line. */
export const plainBody = (text: string, marksAreKept: boolean): Body => ({
  text: text.replace(/\r\n?/g, '\n').trim(),
  marksAreKept: marksAreKept && !LONE_RETURN.test(text),
})

/** Returns the text of a part of HTML. Some programs copy the HTML of others as it is, so that a quote need not end where an element does. */
export const htmlBody = (html: string): Body => ({ text: htmlToText(html), marksAreKept: false })

/** Returns the text of several parts. It keeps no marks, because one of the parts may be the words of others as a whole. */
export function joinBodies(bodies: readonly Body[]): Body {
  const [first, ...others] = bodies.filter(({ text }) => text !== '')
  if (!first) return { text: '', marksAreKept: false }
  return others.length === 0 ? first : { text: [first, ...others].map(({ text }) => text).join('\n\n'), marksAreKept: false }
}
