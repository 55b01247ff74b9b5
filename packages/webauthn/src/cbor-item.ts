/** Just enough CBOR (RFC 8949) to see what an attestation object is made of; definite lengths only, as CTAP2 demands. */

const DEPTH_MAX = 8

export const MAJOR = { bytes: 2, text: 3, list: 4, map: 5, tag: 6, simple: 7 } as const

export interface CborHead {
  readonly major: number
  /** The number itself, or how many bytes, items or pairs follow. */
  readonly value: number
  /** Where what follows begins. */
  readonly next: number
}

const malformed = (): RangeError => new RangeError('malformed CBOR')

/** Throws `RangeError` for what is no head of an item. */
export function readHead(bytes: Uint8Array, at: number): CborHead {
  const first = bytes[at]
  if (first === undefined) throw malformed()
  const major = first >> 5
  const short = first & 31
  if (short < 24) return { major, value: short, next: at + 1 }
  const width = { 24: 1, 25: 2, 26: 4, 27: 8 }[short]
  if (width === undefined || at + 1 + width > bytes.length) throw malformed()
  let value = 0
  for (const byte of bytes.subarray(at + 1, at + 1 + width)) value = value * 256 + byte
  return { major, value, next: at + 1 + width }
}

/** Where the item that begins at `at` ends. Throws `RangeError` for one that is cut short, malformed or nested deeper than 8. */
export function endOfItem(bytes: Uint8Array, at: number, depth = 0): number {
  if (depth > DEPTH_MAX) throw malformed()
  const { major, value, next } = readHead(bytes, at)
  if (major === MAJOR.bytes || major === MAJOR.text) {
    if (value > bytes.length - next) throw malformed()
    return next + value
  }
  if (major < MAJOR.bytes || major === MAJOR.simple) return next
  const items = major === MAJOR.map ? value * 2 : major === MAJOR.list ? value : 1
  let end = next
  // Every item takes a byte at least, so that the bytes bound this and not the number somebody wrote there.
  for (let item = 0; item < items; item++) end = endOfItem(bytes, end, depth + 1)
  return end
}
