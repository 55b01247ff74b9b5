/** Signatures and comparisons in constant time. No other file calls `createHmac` or `timingSafeEqual`. */
import { createHmac, hash, timingSafeEqual } from 'node:crypto'

export type Bytes = Uint8Array | string

/** Returns the SHA-256 digest in lower-case hex. */
export const sha256Hex = (value: Bytes): string => hash('sha256', value, 'hex')

/** Compares two digests in constant time; digests of different length are not equal. */
export const equalDigests = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && timingSafeEqual(a, b)

/** Compares two texts of any length in constant time, by their digests. */
export const equalTexts = (a: string, b: string): boolean => timingSafeEqual(hash('sha256', a, 'buffer'), hash('sha256', b, 'buffer'))

/** Returns the HMAC-SHA256 of the concatenated parts. */
export function hmacSha256(secret: Bytes, ...parts: Bytes[]): Buffer {
  const mac = createHmac('sha256', secret)
  for (const part of parts) mac.update(part)
  return mac.digest()
}

/** The base64 form of 32 bytes. The unused bits of the last character must be 0, so that each value has one form. */
const BASE64 = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/

/** Tells whether `signature` is the HMAC-SHA256 of the parts, in hex of either case after an optional `prefix`, or in base64. */
export function verifyHmac(
  secret: Bytes,
  parts: readonly Bytes[],
  signature: string,
  { prefix = '', encoding = 'hex' as 'hex' | 'base64' } = {},
): boolean {
  if (!signature.startsWith(prefix)) return false
  const encoded = signature.slice(prefix.length)
  const shape = encoding === 'hex' ? /^[0-9a-fA-F]{64}$/ : BASE64
  if (!shape.test(encoded)) return false
  return equalDigests(hmacSha256(secret, ...parts), Buffer.from(encoded, encoding))
}
