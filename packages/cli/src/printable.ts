/** Texts of strangers on a terminal: what would move its cursor, change its colours or turn its lines around is spelled out. */

const UNPRINTABLE = /(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu

/** Line breaks and tabs stay. */
export const printable = (text: string): string =>
  text.replaceAll('\r\n', '\n').replace(UNPRINTABLE, (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`)

/** One line of at most `charsMax` characters. */
export function oneLine(text: string, charsMax: number): string {
  const characters = Array.from(
    printable(text.slice(0, charsMax * 4))
      .replace(/\s+/g, ' ')
      .trim(),
  )
  return characters.length > charsMax ? `${characters.slice(0, charsMax - 1).join('')}…` : characters.join('')
}
