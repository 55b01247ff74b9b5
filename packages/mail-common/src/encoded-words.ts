/** Encodes and decodes header texts with characters beyond ASCII (RFC 2047). */

const WORD = /=\?([\w.-]+)(?:\*[\w-]+)?\?([bq])\?([^?\s]*)\?=/gi
/** White space between two encoded words, which is not part of the text. */
const BETWEEN_WORDS = /(\?=)\s+(?==\?)/g
/** Keeps an encoded word, with its prefix and suffix, within 75 characters. */
const WORD_BYTES_MAX = 42

/** Replaces encoded words by their text. A word with an unknown charset stays as it is. */
export const decodeWords = (text: string): string =>
  text
    .replace(BETWEEN_WORDS, '$1')
    .replace(WORD, (word, charset: string, encoding: string, content: string) =>
      decodeText(encoding.toLowerCase() === 'b' ? Buffer.from(content, 'base64') : fromQ(content), charset, word),
    )

/** Encodes a text, with a line break before each further word. Returns plain ASCII unchanged unless it looks encoded. */
export function encodeWords(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text) && !text.includes('=?')) return text
  const words: string[] = []
  let word = ''
  for (const character of text) {
    if (Buffer.byteLength(word + character) > WORD_BYTES_MAX) {
      words.push(word)
      word = ''
    }
    word += character
  }
  words.push(word)
  return words.map((part) => `=?utf-8?B?${Buffer.from(part).toString('base64')}?=`).join('\r\n ')
}

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
