/**
 * Arrays of texts and of bytes as the server receives them in its binary format. It parses no literal then, and bytes are not sent as
 * twice as many hexadecimal digits.
 */

/** The types of the elements, as the server numbers them. */
const BYTEA = 17
const TEXT = 25

const HEADER_BYTES = 20
const LENGTH_BYTES = 4
const DIMENSIONS = 1
const FIRST_INDEX = 1
const NULL_LENGTH = -1

type Element = string | Uint8Array | null

/** Returns the array as a parameter, or undefined for an array that does not hold texts alone or bytes alone, besides nulls. */
export function toBinaryArray(values: readonly unknown[]): Buffer | undefined {
  const known = values.find((value) => value !== null)
  const isText = typeof known === 'string'
  if (!isText && !(known instanceof Uint8Array)) return undefined
  const elements = values as readonly Element[]
  let size = HEADER_BYTES
  let hasNull = 0
  for (const element of elements) {
    size += LENGTH_BYTES
    if (element === null) hasNull = 1
    else if ((typeof element === 'string') !== isText) return undefined
    else size += typeof element === 'string' ? Buffer.byteLength(element) : element.length
  }
  const buffer = Buffer.allocUnsafe(size)
  let at = 0
  for (const word of [DIMENSIONS, hasNull, isText ? TEXT : BYTEA, elements.length, FIRST_INDEX]) at = buffer.writeInt32BE(word, at)
  for (const element of elements) {
    if (element === null) {
      at = buffer.writeInt32BE(NULL_LENGTH, at)
      continue
    }
    const start = at + LENGTH_BYTES
    if (typeof element === 'string') at = start + buffer.write(element, start)
    else {
      buffer.set(element, start)
      at = start + element.length
    }
    buffer.writeInt32BE(at - start, start - LENGTH_BYTES)
  }
  return buffer
}
