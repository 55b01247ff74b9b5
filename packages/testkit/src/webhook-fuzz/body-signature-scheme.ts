/** Platforms that sign the body alone, with HMAC-SHA256 in hex in one header. */
import { hmacSha256, sha256Hex, type Webhook } from '@sluice/sdk'
import { forgeMac } from './forge-mac.ts'
import type { Random } from './random.ts'
import type { Scheme } from './scheme.ts'
import { validBodies } from './valid-bodies.ts'

export interface BodySignature {
  readonly secret: string
  /** The header's name in lower case. */
  readonly header: string
  /** The text before the digits. Default: none. */
  readonly prefix?: string
}

export function bodySignatureScheme(webhook: Webhook, { secret, header, prefix = '' }: BodySignature, random: Random): Scheme {
  return {
    count: 1_000_000,
    webhook,
    coversBody: true,
    isTimed: false,
    valid: validBodies(webhook, random).map(({ body, atMs }) => ({
      headers: { [header]: prefix + hmacSha256(secret, body).toString('hex') },
      query: '',
      body,
      atMs,
    })),
    forge(request, random) {
      const mac = forgeMac({ secret, parts: [request.body] }, random).toString('hex')
      return { ...request, headers: { ...request.headers, [header]: prefix + mac } }
    },
    proofs({ headers, body }) {
      const signature = headers[header]?.trim() ?? ''
      return signature.startsWith(prefix) ? [`${signature.slice(prefix.length).toLowerCase()} ${sha256Hex(body)}`] : []
    },
  }
}
