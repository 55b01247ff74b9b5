/** Signatures and comparisons in constant time. No other file calls `createHmac` or `timingSafeEqual`. */
import { createHmac, hash, timingSafeEqual } from 'node:crypto'

export type Bytes = Uint8Array | string

/** The SHA-256 digest in lower-case hex. */
export const sha256Hex = (value: Bytes): string => hash('sha256', value, 'hex')

/** True if both digests are equal. Takes the same time wherever they differ; a different length is simply false. */
export const equalDigests = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && timingSafeEqual(a, b)

/** Compares two texts of any length in constant time, by their digests. */
export const equalTexts = (a: string, b: string): boolean => timingSafeEqual(hash('sha256', a, 'buffer'), hash('sha256', b, 'buffer'))

/** HMAC-SHA256 of the parts one after the other. */
export function hmacSha256(secret: Bytes, ...parts: Bytes[]): Buffer {
  const mac = createHmac('sha256', secret)
  for (const part of parts) mac.update(part)
  return mac.digest()
}

/** Of 32 bytes; the bits of the last character that belong to none are 0, so that there is one form and no other. */
const BASE64 = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/

/** True if `signature` is the HMAC-SHA256 of the parts, in hex (either case) after an optional `prefix`, or in base64. */
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
