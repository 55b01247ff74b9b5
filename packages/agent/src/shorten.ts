/** Cuts the middle out of a long text: what stands first and what stands last says most. */

/** At most `charsMax` characters of `text`, two thirds from its head and one from its tail, plus a line that says so. */
export function shorten(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text
  const head = Math.ceil((charsMax * 2) / 3)
  const tail = charsMax - head
  const left = text.length - charsMax
  // A cut may fall between the two halves of a character; models refuse such text.
  return `${text.slice(0, head)}\n[… ${left} characters left out …]\n${text.slice(text.length - tail)}`.toWellFormed()
}
