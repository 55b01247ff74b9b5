/** Finds where the words of others begin in the text of a mail. */

/** A line that begins with `>`, a rule with a title, or the line before a quote that mail programs write in the usual languages. */
const QUOTE =
  /^(?:[ \t]{0,4}>|-{2,20} ?[^\n\r\u2028\u2029-]{3,60} ?-{2,20}$|_{20,80}$|(?:On|Am|Le|El|Il|Em|Op|Den|Dnia|Begin)\b.{5,300}:[ \t]{0,4}$|From: .{1,300}@)/m

/**
 * Returns the index at which the first quoted or forwarded text begins; -1 without any. It knows the marks that mail programs write: a
 * sender who pastes text without a mark vouches for it.
 */
export const quoteStart = (text: string): number => text.search(QUOTE)
