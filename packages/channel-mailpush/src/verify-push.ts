/** What proves that a push comes from the subscription (§5): the shared secret, or the push service's signed token. */
import { AppError, equalTexts, type Host, type Webhook } from '@sluice/sdk'
import type { MailpushConfig } from './config.ts'
import { createPushTokenCheck } from './push-token.ts'

type Proof = Pick<Webhook, 'verify' | 'unsigned'>

export function createProof(host: Host, config: MailpushConfig): Proof {
  const { webhook_url: audience, service_account: email, jwks_url: jwksUrl } = config
  const checkToken = audience && email ? createPushTokenCheck(host, { audience, email, jwksUrl }) : undefined
  const secret = () => config.webhook_secret?.reveal().trim() ?? ''
  if (secret() === '' && !checkToken) {
    return { unsigned: 'webhook_secret', verify: () => ({ by: 'nothing: webhook_secret is not set' }) }
  }
  const isSecret = (given: string) => secret() !== '' && equalTexts(given, secret())

  return {
    async verify({ headers, url }) {
      const bearer = bearerOf(headers.authorization ?? '')
      if (bearer !== undefined && isSecret(bearer)) return { by: 'the bearer' }
      const tokens = url.searchParams.getAll('token')
      if (tokens.length === 1 && isSecret(tokens[0] ?? '')) return { by: '?token=' }
      const wrong = bearer !== undefined && checkToken ? await checkToken(bearer) : 'neither bearer nor ?token= is webhook_secret'
      if (wrong === undefined) return { by: 'the signed token' }
      throw new AppError('unauthorized', 'Unauthorized', { cause: wrong })
    },
  }
}

const bearerOf = (authorization: string): string | undefined => /^bearer +(\S+)$/i.exec(authorization.trim())?.[1]
