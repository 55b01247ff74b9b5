/** Decodes header texts with characters beyond ASCII (RFC 2047). */

const WORD = /=\?([\w.-]+)(?:\*[\w-]+)?\?([bq])\?([^?\s]*)\?=/gi
/** White space between two encoded words, which is not part of the text. */
const BETWEEN_WORDS = /(\?=)\s+(?==\?)/g

/** Replaces encoded words by their text. A word with an unknown charset stays as it is. */
export const decodeWords = (text: string): string =>
  text
    .replace(BETWEEN_WORDS, '$1')
    .replace(WORD, (word, charset: string, encoding: string, content: string) =>
      decodeText(encoding.toLowerCase() === 'b' ? Buffer.from(content, 'base64') : fromQ(content), charset, word),
    )

/** Decodes bytes. For an unknown charset returns `fallback`, or the bytes as UTF-8 without one. */
export function decodeText(bytes: Uint8Array, charset: string, fallback?: string): string {
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    return fallback ?? new TextDecoder().decode(bytes)
  }
}

const fromQ = (text: string): Buffer =>
  Buffer.from(
    text.replace(/_/g, ' ').replace(/=([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
