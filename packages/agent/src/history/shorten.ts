/** Shortens a text by removing its middle, because the beginning and the end are most useful. */

/** Returns at most `charsMax` characters, two thirds from the beginning and one third from the end, and a line about the cut. */
export function shorten(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text
  const head = Math.ceil((charsMax * 2) / 3)
  const tail = charsMax - head
  const left = text.length - charsMax
  // A cut may split a surrogate pair, and models refuse such text.
  return `${text.slice(0, head)}\n[… ${left} characters left out …]\n${text.slice(text.length - tail)}`.toWellFormed()
}
