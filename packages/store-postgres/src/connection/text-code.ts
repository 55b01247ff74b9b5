/**
 * Texts as PostgreSQL can store them. It refuses the character NUL, so that NUL and the character that escapes it are stored as two
 * characters. The order of texts and their prefixes stay the same.
 */
import { toBinaryArray } from './array-parameter.ts'

const NUL = '\0'
const ESCAPE = '\u0001'

/** Returns the text as it is stored. Half a surrogate pair becomes U+FFFD, as in any UTF-8 text. */
export const toStored = (text: string): string =>
  text.includes(NUL) || text.includes(ESCAPE) ? text.replaceAll(ESCAPE, `${ESCAPE}1`).replaceAll(NUL, `${ESCAPE}0`) : text

/** Returns the text that `toStored` was given. */
export const fromStored = (text: string): string =>
  text.includes(ESCAPE) ? text.replaceAll(`${ESCAPE}0`, NUL).replaceAll(`${ESCAPE}1`, ESCAPE) : text

/** Returns a parameter of a statement with its texts as they are stored. Throws a TypeError for an object. */
export function toParameter(value: unknown): unknown {
  if (typeof value === 'string') return toStored(value)
  if (Array.isArray(value)) {
    const stored = value.map(toParameter)
    return toBinaryArray(stored) ?? stored
  }
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return value
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  throw new TypeError(`a column cannot hold a value of the type ${typeof value}`)
}
