/**
 * Makes text from models, platforms and files safe for a terminal. Control characters (C0, DEL and C1), line separators and
 * bidirectional controls become \\u escapes, so that text cannot control the terminal or reorder a line. In JSON the escapes
 * mean the same characters.
 */
const UNPRINTABLE = /(?![\n\t])[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

const spelledOut = (character: string): string => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`

/** Escapes a text and keeps its line breaks and tabs. */
export const printable = (text: string): string => text.replaceAll('\r\n', '\n').replace(UNPRINTABLE, spelledOut)

/** Escapes a text with its line breaks and tabs, so that the result is one line. */
export const printableLine = (text: string): string => text.replace(/[\n\t\r]/g, spelledOut).replace(UNPRINTABLE, spelledOut)

/** Returns one line of at most `charsMax` characters, in which each run of blanks and line breaks is one blank. */
export function oneLine(text: string, charsMax: number): string {
  const characters = Array.from(
    printable(text.slice(0, charsMax * 4))
      .replace(/\s+/g, ' ')
      .trim(),
  )
  return characters.length > charsMax ? `${characters.slice(0, charsMax - 1).join('')}…` : characters.join('')
}
