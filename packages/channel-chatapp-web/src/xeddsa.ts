/**
 * Verifies XEdDSA signatures (https://signal.org/docs/specifications/xeddsa/) with the Ed25519 of Node. The library takes every signature of
 * the right length as valid, because it ignores the answer of libsignal: certificates of servers, and the identities of accounts.
 */
import { createPublicKey, verify } from 'node:crypto'

const P = 2n ** 255n - 19n
const SPKI = Buffer.from('302a300506032b6570032100', 'hex')
const KEY_BYTES = 32
const XEDDSA_BYTES = 64
/** Before a public key in messages of the protocol. */
const KEY_TYPE = 5
const SIGN_BIT = 0x80

/** Whether `signature` is one of the owner of a Curve25519 key, with or without its type in front. */
export function isSignedBy(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const key = publicKey.length === KEY_BYTES + 1 && publicKey[0] === KEY_TYPE ? publicKey.subarray(1) : publicKey
  if (key.length !== KEY_BYTES || signature.length !== XEDDSA_BYTES) return false
  const u = littleEndian(key) & (2n ** 255n - 1n)
  if (u >= P || (u + 1n) % P === 0n) return false
  // The map from the Montgomery curve: y = (u - 1) / (u + 1).
  const y = (((u - 1n + P) % P) * power(u + 1n, P - 2n)) % P
  const point = Buffer.from(y.toString(16).padStart(KEY_BYTES * 2, '0'), 'hex').reverse()
  const plain = Buffer.from(signature)
  const last = plain[XEDDSA_BYTES - 1] ?? 0
  // The sign of the point is in the otherwise unused bit of the signature.
  point[KEY_BYTES - 1] = (point[KEY_BYTES - 1] ?? 0) | (last & SIGN_BIT)
  plain[XEDDSA_BYTES - 1] = last & ~SIGN_BIT
  try {
    return verify(null, message, createPublicKey({ key: Buffer.concat([SPKI, point]), format: 'der', type: 'spki' }), plain)
  } catch {
    return false
  }
}

const littleEndian = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`)

function power(base: bigint, exponent: bigint): bigint {
  let [result, factor] = [1n, base % P]
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left & 1n) result = (result * factor) % P
    factor = (factor * factor) % P
  }
  return result
}
