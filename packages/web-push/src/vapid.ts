/** VAPID (RFC 8292): the key by which push services know this gateway again, and the signed header of each request. */
import { createPrivateKey, generateKeyPairSync, type JsonWebKey, sign } from 'node:crypto'
import type { SecretStore } from '@sluice/sdk'

const SECRET = 'vapid'
/** RFC 8292 allows at most 24 hours. */
const VALID_SECS = 12 * 3600

export interface VapidKey {
  /** The key that browsers get, in base64url: 65 bytes, uncompressed. */
  readonly publicKey: string
  /** Returns the `Authorization` header for a request to the push service of this origin. */
  header(origin: string, contact: string, nowMs: number): string
}

/** Resolves to the key of this gateway, and makes it the first time. All nodes of a cluster have the same. */
export async function readVapidKey(secrets: SecretStore): Promise<VapidKey> {
  const kept = await secrets.get(SECRET)
  if (kept !== undefined) return vapidKey(JSON.parse(kept) as JsonWebKey)
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const made = JSON.stringify(privateKey.export({ format: 'jwk' }))
  await secrets.swap(SECRET, undefined, made)
  return vapidKey(JSON.parse((await secrets.get(SECRET)) ?? made) as JsonWebKey)
}

export function vapidKey(jwk: JsonWebKey): VapidKey {
  const key = createPrivateKey({ key: jwk, format: 'jwk' })
  const coordinate = (part = ''): Buffer => Buffer.from(part, 'base64url')
  const publicKey = Buffer.concat([Uint8Array.of(4), coordinate(jwk.x), coordinate(jwk.y)]).toString('base64url')
  return {
    publicKey,
    header(origin, contact, nowMs) {
      const claims = { aud: origin, exp: Math.floor(nowMs / 1000) + VALID_SECS, sub: contact }
      const signed = [{ typ: 'JWT', alg: 'ES256' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
      const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')
      return `vapid t=${signed}.${signature}, k=${publicKey}`
    },
  }
}
