/** Header texts beyond ASCII (RFC 2047), both ways. */

const WORD = /=\?([\w.-]+)(?:\*[\w-]+)?\?([bq])\?([^?\s]*)\?=/gi
/** White space between two encoded words belongs to neither. */
const BETWEEN_WORDS = /(\?=)\s+(?==\?)/g
/** So that a word, with what is around it, has at most 75 characters. */
const WORD_BYTES_MAX = 42

export const decodeWords = (text: string): string =>
  text
    .replace(BETWEEN_WORDS, '$1')
    .replace(WORD, (word, charset: string, encoding: string, content: string) =>
      decodeText(encoding.toLowerCase() === 'b' ? Buffer.from(content, 'base64') : fromQ(content), charset, word),
    )

/** ASCII stays readable; anything else, and what looks encoded, is encoded, in lines a header may be folded into. */
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

/** `fallback`, or the text as UTF-8, if nobody knows the charset. */
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
