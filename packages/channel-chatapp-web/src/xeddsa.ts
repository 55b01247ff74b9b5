/**
 * Verifies XEdDSA signatures (https://signal.org/docs/specifications/xeddsa/) with the Ed25519 of Node. The library takes every signature of
 * the right length as valid, because it ignores the answer of libsignal: certificates of servers, and the identities of accounts.
 */
import { createPublicKey, verify } from 'node:crypto'
import { ed25519 } from '@noble/curves/ed25519.js'

const { Fp } = ed25519.Point
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
  const plain = Buffer.from(signature)
  const last = plain[XEDDSA_BYTES - 1] ?? 0
  try {
    const point = edwardsPoint(key)
    // The sign of the point is in the otherwise unused bit of the signature.
    point[KEY_BYTES - 1] = (point[KEY_BYTES - 1] ?? 0) | (last & SIGN_BIT)
    plain[XEDDSA_BYTES - 1] = last & ~SIGN_BIT
    return verify(null, message, createPublicKey({ key: Buffer.concat([SPKI, point]), format: 'der', type: 'spki' }), plain)
  } catch {
    return false
  }
}

/** The map from the Montgomery curve: y = (u - 1) / (u + 1). Throws for a key that is not a point. */
function edwardsPoint(key: Uint8Array): Uint8Array {
  const masked = Uint8Array.from(key)
  masked[KEY_BYTES - 1] = (masked[KEY_BYTES - 1] ?? 0) & ~SIGN_BIT
  const u = Fp.fromBytes(masked)
  return Fp.toBytes(Fp.div(Fp.sub(u, Fp.ONE), Fp.add(u, Fp.ONE)))
}
