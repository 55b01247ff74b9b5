/** Reasons of others in sentences of our own. */

const ENDS = ['.', '!', '?', '…']

/** Returns a text as the end of a sentence: with a full stop, unless it ends with a mark of its own. */
export function withFullStop(text: string): string {
  const trimmed = text.trimEnd()
  return ENDS.some((end) => trimmed.endsWith(end)) ? trimmed : `${trimmed}.`
}
