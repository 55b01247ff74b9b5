/**
 * Texts as PostgreSQL can store them. It refuses the character NUL, so that NUL and the character that escapes it are stored as two
 * characters. The order of texts and their prefixes stay the same.
 */

const ESCAPE = '\u0001'
const SPECIAL = /[\0\u0001]/
const ALL_SPECIAL = /[\0\u0001]/g
const ESCAPED = /\u0001([01])/g

/** Returns the text as it is stored. Half a surrogate pair becomes U+FFFD, as in any UTF-8 text. */
export const toStored = (text: string): string =>
  SPECIAL.test(text) ? text.replace(ALL_SPECIAL, (special) => (special === ESCAPE ? `${ESCAPE}1` : `${ESCAPE}0`)) : text

/** Returns the text that `toStored` was given. */
export const fromStored = (text: string): string =>
  text.includes(ESCAPE) ? text.replace(ESCAPED, (_, code) => (code === '1' ? ESCAPE : '\0')) : text

/** Returns a parameter of a statement with its texts as they are stored. Throws a TypeError for an object. */
export function toParameter(value: unknown): unknown {
  if (typeof value === 'string') return toStored(value)
  if (Array.isArray(value)) return value.map(toParameter)
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return value
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  throw new TypeError(`a column cannot hold a value of the type ${typeof value}`)
}
