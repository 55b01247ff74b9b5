/** The push service of the mail provider: push bodies, their signed tokens, and the public keys that verify them. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/** The claims of a push token. */
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

/** The keys of the push service. */
export interface PushKeys {
  /** The key set in the format of the key server. */
  jwks(): { readonly keys: readonly object[] }
  /** Signs a token with RS256 as the push service does; it is valid for an hour unless `exp` is given. */
  mint(claims: PushClaims, nowMs: number): string
  /** The current public key as PEM, which a forger can know too. */
  publicPem(): string
  /** Starts signing with a new key; the previous one stays in the key set. */
  rotate(): void
}

const HOUR_SECS = 3600

/** Creates keys; the first pair is generated at its first use. */
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

/** The body of a push request. */
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

/** Encodes a value as base64url JSON, as in a token. */
export const encodeJson = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
