/** Signatures and comparisons in constant time. No other file calls `createHmac` or `timingSafeEqual`. */

export type Bytes = Uint8Array | string

/** Loads the module at the first signature: importing it takes longer than the rest of a channel's entry `./webhook` together. */
const crypto = () => process.getBuiltinModule('node:crypto')

/** Returns the SHA-256 digest in lower-case hex. */
export const sha256Hex = (value: Bytes): string => crypto().hash('sha256', value, 'hex')

/** Compares two digests in constant time; digests of different length are not equal. */
export const equalDigests = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && crypto().timingSafeEqual(a, b)

/** Compares two texts of any length in constant time, by their digests. */
export const equalTexts = (a: string, b: string): boolean => crypto().timingSafeEqual(sha256(a), sha256(b))

const sha256 = (text: string) => crypto().hash('sha256', text, 'buffer')

export type HmacAlgorithm = 'sha1' | 'sha256' | 'sha512'

/** Returns the HMAC of the concatenated parts. */
export const hmac = (algorithm: HmacAlgorithm, secret: Bytes, ...parts: readonly Bytes[]): Buffer =>
  macOf(algorithm, secret, parts).digest()

/** Returns the HMAC-SHA256 of the concatenated parts. */
export const hmacSha256 = (secret: Bytes, ...parts: readonly Bytes[]): Buffer => hmac('sha256', secret, ...parts)

function macOf(algorithm: HmacAlgorithm, secret: Bytes, parts: readonly Bytes[]) {
  const mac = crypto().createHmac(algorithm, secret)
  for (const part of parts) mac.update(part)
  return mac
}

/**
 * Tells whether `signature` is the HMAC of the parts, in hex of either case after an optional `prefix`, in base64, or in base64url without
 * padding.
 */
export function verifyHmac(
  secret: Bytes,
  parts: readonly Bytes[],
  signature: string,
  { prefix = '', encoding = 'hex' as 'hex' | 'base64' | 'base64url', algorithm = 'sha256' as HmacAlgorithm } = {},
): boolean {
  if (!signature.startsWith(prefix)) return false
  const given = signature.slice(prefix.length)
  // The texts are compared, because a digest as a buffer of its own costs more, and a digest has one accepted text.
  const wanted = macOf(algorithm, secret, parts).digest(encoding)
  return equalDigests(Buffer.from(wanted), Buffer.from(encoding === 'hex' ? given.toLowerCase() : given))
}
