/** Platforms that sign nothing: every request carries a secret, in the URL, as a bearer token, or in its body. */
import type { Webhook } from '@sluice/sdk'
import type { Random } from '../random.ts'
import { otherSecret } from './forge-mac.ts'
import { urlOf, type WebhookRequest } from './request.ts'
import type { Scheme } from './scheme.ts'
import { validBodies } from './valid-bodies.ts'

/** The secrets in a request: its bearer token, and its URL token unless it is repeated. */
function presented({ headers, query }: WebhookRequest): string[] {
  const [, bearer] = /^bearer +(.+)$/i.exec(headers.authorization?.trim() ?? '') ?? []
  const tokens = query === '' ? [] : urlOf(query).searchParams.getAll('token')
  return [...(bearer === undefined ? [] : [bearer]), ...(tokens.length === 1 ? tokens : [])]
}

const asBearer = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` }, query: '' })
const asToken = (secret: string) => ({ headers: {}, query: `token=${encodeURIComponent(secret)}` })

/** Requests that carry the secret as a bearer token. */
export const bearerScheme = (webhook: Webhook, secret: string, random: Random): Scheme =>
  sharedSecretScheme(webhook, secret, asBearer, random)

/** Requests that carry the secret as `?token=`. */
export const tokenScheme = (webhook: Webhook, secret: string, random: Random): Scheme =>
  sharedSecretScheme(webhook, secret, asToken, random)

type Present = (secret: string) => Pick<WebhookRequest, 'headers' | 'query'>

function sharedSecretScheme(webhook: Webhook, secret: string, present: Present, random: Random): Scheme {
  return {
    count: 1_000_000,
    webhook,
    coversBody: false,
    isTimed: false,
    valid: validBodies(webhook, random).map(({ body, atMs }) => ({ ...present(secret), body, atMs })),
    forge(request, random) {
      const other = Buffer.from(otherSecret(secret, random)).toString('latin1')
      return { ...request, ...random.pick([asBearer, asToken])(other) }
    },
    proofs: presented,
  }
}

/** Requests that carry the secret inside of their JSON body. `sample` of the webhook writes it there; `tokenIn` reads it. */
export function bodyTokenScheme(webhook: Webhook, secret: string, tokenIn: (body: unknown) => unknown, random: Random): Scheme {
  return {
    count: 1_000_000,
    webhook,
    coversBody: false,
    isTimed: false,
    valid: validBodies(webhook, random).map(({ body, atMs }) => ({ headers: {}, query: '', body, atMs })),
    forge(request, random) {
      const other = Buffer.from(otherSecret(secret, random)).toString('hex')
      return { ...request, body: Buffer.from(Buffer.from(request.body).toString().replace(secret, other)) }
    },
    proofs({ body }) {
      try {
        const token = tokenIn(JSON.parse(Buffer.from(body).toString()))
        return typeof token === 'string' ? [token] : []
      } catch {
        return []
      }
    },
  }
}
