/** Reads keys in the forms that people copy from clients: hex, and bech32 by NIP-19. */
import type { Secret } from '@sluice/sdk'
import { decode } from 'nostr-tools/nip19'
import { getPublicKey } from 'nostr-tools/pure'

const HEX = /^[0-9a-f]{64}$/

export const isHexKey = (text: string): boolean => HEX.test(text)

/** Returns a public key in hex; undefined for any other text, a private key included. */
export function publicKeyOf(text: string): string | undefined {
  const written = text
    .trim()
    .toLowerCase()
    .replace(/^nostr:/, '')
  if (isHexKey(written)) return written
  const decoded = decodeQuietly(written)
  if (decoded?.type === 'npub') return decoded.data
  return decoded?.type === 'nprofile' ? decoded.data.pubkey : undefined
}

/** Returns the bytes of a private key; undefined for any other text. */
export function secretKeyOf(secret: Secret): Uint8Array | undefined {
  const written = secret.reveal().trim().toLowerCase()
  const decoded = isHexKey(written) ? undefined : decodeQuietly(written)
  const bytes = decoded?.type === 'nsec' ? decoded.data : isHexKey(written) ? Uint8Array.from(Buffer.from(written, 'hex')) : undefined
  return bytes && isOnCurve(bytes) ? bytes : undefined
}

/** Zero and numbers beyond the order of the curve are not keys. */
function isOnCurve(bytes: Uint8Array): boolean {
  try {
    return isHexKey(getPublicKey(bytes))
  } catch {
    return false
  }
}

/** The errors of the library quote the text, which may be a private key. */
function decodeQuietly(text: string) {
  try {
    return decode(text)
  } catch {
    return undefined
  }
}
