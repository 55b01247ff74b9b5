/**
 * Finds the words of the sender below and between the quotes of a mail. They count as the sender's own only if no one else can have put
 * words there: the text says `format=flowed`, whose programs keep the mark on each line of a quote that they wrap (RFC 3676, section 4.5),
 * and an empty line without a mark ends the quote, because the second half of a line that was wrapped without one stands right below it.
 */
import type { Inbound } from '@sluice/sdk'
import { isCopiedSubject, isForwardSubject } from './copied-subject.ts'
import { type FoundQuote, firstQuote, type Line, linesOf } from './quote-start.ts'

/** A part of a text: the index of its first character, and the one after its last. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** The text between the subject and the body. */
const BODY = '\n\n'
/** The rest of a mail with more quotes counts as a quote. */
const QUOTES_MAX = 20

/**
 * Whether a text with these parameters of its content type keeps the marks of quotes. Apple Mail, which writes `delsp=yes`, can quote
 * without marks, so that marks in its text may come from the quoted mail.
 */
export const keepsMarks = ({
  format = '',
  delsp = '',
}: {
  readonly format?: string | undefined
  readonly delsp?: string | undefined
}): boolean => format.toLowerCase() === 'flowed' && delsp.toLowerCase() !== 'yes'

/**
 * Returns the members of a message that say where the words of others are in its text, as `messageText` makes it; no member without any.
 * The subject of a forward, and of an answer with a quote or an attached mail, counts as words of others.
 */
export function quotesIn(
  text: string,
  marksAreKept: boolean,
  subject = '',
  hasAttachedMail = false,
): Pick<Inbound, 'quotedFrom' | 'ownBelow'> {
  const lines = linesOf(text)
  const quote = firstQuote(lines)
  const quotedFrom = quote?.at ?? -1
  const below = quote && marksAreKept ? belowQuote(text, lines, quote) : []
  if (!isForwardSubject(subject) && !(isCopiedSubject(subject, true) && (quotedFrom >= 0 || hasAttachedMail))) {
    return quotedFrom < 0 ? {} : { quotedFrom, ...(below.length > 0 && { ownBelow: below }) }
  }
  const subjectEnd = text.indexOf(BODY)
  const from = subjectEnd < 0 ? text.length : subjectEnd + BODY.length
  const above = { from, to: quotedFrom < 0 ? text.length : quotedFrom }
  const own = [...(text.slice(above.from, above.to).trim() === '' ? [] : [above]), ...below]
  return { quotedFrom: 0, ...(own.length > 0 && { ownBelow: own }) }
}

/** Returns the parts of a text behind its first quote that are the sender's own words, in their order. Call it only if `keepsMarks`. */
export function ownBelow(text: string): readonly Span[] {
  const lines = linesOf(text)
  const quote = firstQuote(lines)
  return quote ? belowQuote(text, lines, quote) : []
}

function belowQuote(text: string, lines: readonly Line[], first: FoundQuote): readonly Span[] {
  const spans: Span[] = []
  let rest = lines
  let quote: FoundQuote | undefined = first
  for (let count = 0; quote && count < QUOTES_MAX; count++) {
    const end = endOf(rest, quote)
    if (end === undefined) break
    rest = rest.slice(end)
    quote = firstQuote(rest)
    const [from, to] = [rest[0]?.at ?? text.length, quote?.at ?? text.length]
    if (text.slice(from, to).trim() !== '') spans.push({ from, to })
  }
  return spans
}

/** Returns the index of the first line below a quote; undefined for a quote that goes on to the end of the mail. */
function endOf(lines: readonly Line[], { marked }: FoundQuote): number | undefined {
  if (marked === undefined) return undefined
  let isAfterEmpty = false
  for (let index = marked; index < lines.length; index++) {
    const { line, isEmpty } = lines[index] ?? { line: '', isEmpty: true }
    if (isAfterEmpty && !isEmpty && !line.startsWith('>')) return index
    isAfterEmpty = isEmpty
  }
  return undefined
}
