/** Reads the CBOR (RFC 8949) of attestation objects. Supports only definite lengths, as CTAP2 requires. */

const DEPTH_MAX = 8

export const MAJOR = { bytes: 2, text: 3, list: 4, map: 5, tag: 6, simple: 7 } as const

export interface CborHead {
  readonly major: number
  /** The number itself, or the count of bytes, items or pairs that follow. */
  readonly value: number
  /** The index of the first byte after the head. */
  readonly next: number
}

const malformed = (): RangeError => new RangeError('malformed CBOR')

/** Reads the head of the item at `at`. Throws `RangeError` if it is malformed. */
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

/** Returns the end of the item at `at`. Throws `RangeError` if the item is incomplete, malformed or nested deeper than 8 levels. */
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
  // Each item takes at least one byte, so the input's length bounds this loop even if it claims more items.
  for (let item = 0; item < items; item++) end = endOfItem(bytes, end, depth + 1)
  return end
}
