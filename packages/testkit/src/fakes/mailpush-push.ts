/** The push side of the mail provider: envelopes, and the signed tokens that come with them, with the keys to check them. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

export interface PushClaims {
  /** The URL on the push subscription. */
  readonly aud: string
  readonly email: string
  readonly email_verified?: boolean
  readonly iss?: string
  /** Seconds since 1970. */
  readonly iat?: number
  readonly exp?: number
}

export interface PushKeys {
  /** As the key server answers. */
  jwks(): { readonly keys: readonly object[] }
  /** Signs as the push service does: RS256, good for an hour. */
  mint(claims: PushClaims, nowMs: number): string
  /** Of the current key, as PEM; what a forger knows. */
  publicPem(): string
  /** From now on another key signs; the one before it can still be had. */
  rotate(): void
}

const HOUR_SECS = 3600

export function createPushKeys(): PushKeys {
  const made: { kid: string; publicKey: KeyObject; privateKey: KeyObject }[] = []
  const make = () => {
    const pair = { kid: `key-${made.length + 1}`, ...generateKeyPairSync('rsa', { modulusLength: 2048 }) }
    made.push(pair)
    return pair
  }
  const current = () => made.at(-1) ?? make()
  return {
    jwks() {
      current()
      return {
        keys: made.slice(-2).map(({ kid, publicKey }) => ({ ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' })),
      }
    },
    mint(claims, nowMs) {
      const { kid, privateKey } = current()
      const nowSecs = Math.floor(nowMs / 1000)
      const payload = {
        iss: 'https://accounts.google.com',
        sub: '100000000000000000001',
        email_verified: true,
        iat: nowSecs,
        exp: nowSecs + HOUR_SECS,
        ...claims,
      }
      const signed = `${encodeJson({ alg: 'RS256', kid, typ: 'JWT' })}.${encodeJson(payload)}`
      return `${signed}.${sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`
    },
    publicPem: () => current().publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    rotate: () => void make(),
  }
}

/** The body of a push. */
export const pushEnvelope = (notice: object, messageId = '700000000000001'): string =>
  JSON.stringify({
    message: {
      data: Buffer.from(JSON.stringify(notice)).toString('base64'),
      messageId,
      message_id: messageId,
      publishTime: '2026-01-01T00:00:00Z',
    },
    subscription: 'projects/p/subscriptions/s',
  })

export const encodeJson = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
