/**
 * Text from models, platforms and files, as a terminal may show it. Control characters (C0, DEL and C1), line separators and
 * bidirectional controls are spelled out as \\u escapes, so that text can neither command the terminal nor reorder a line.
 * In JSON the escapes mean the same characters.
 */
const UNPRINTABLE = /(?![\n\t])[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

const spelledOut = (character: string): string => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`

/** Line breaks and tabs stay. */
export const printable = (text: string): string => text.replaceAll('\r\n', '\n').replace(UNPRINTABLE, spelledOut)

/** Line breaks and tabs are spelled out as well: the result is one line. */
export const printableLine = (text: string): string => text.replace(/[\n\t\r]/g, spelledOut).replace(UNPRINTABLE, spelledOut)

/** One line of at most `charsMax` characters, with each run of blanks and line breaks as one blank. */
export function oneLine(text: string, charsMax: number): string {
  const characters = Array.from(
    printable(text.slice(0, charsMax * 4))
      .replace(/\s+/g, ' ')
      .trim(),
  )
  return characters.length > charsMax ? `${characters.slice(0, charsMax - 1).join('')}…` : characters.join('')
}
