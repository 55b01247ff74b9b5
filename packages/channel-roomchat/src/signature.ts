/** The signature of both directions: HMAC-SHA256 in hex over a random value and the body that comes in, or the text that goes out. */
import { hmacSha256, type Secret, verifyHmac } from '@sluice/sdk'

export const sign = (secret: Secret, random: string, signed: Uint8Array | string): string =>
  hmacSha256(secret.reveal().trim(), random, signed).toString('hex')

/** In constant time; hex in either case. */
export const isSigned = (secret: Secret, random: string, signed: Uint8Array | string, signature: string): boolean =>
  verifyHmac(secret.reveal().trim(), [random, signed], signature)
