/** The token endpoint of the fake mail API. It exchanges a refresh token for access tokens, which stay valid until `expire`. */
import type { ProviderReply, ProviderRequest } from '@sluice/testkit/fake-provider'

/** The token endpoint and its valid access tokens. */
export interface Tokens {
  readonly client: { readonly client_id: string; readonly client_secret: string; readonly refresh_token: string }
  isGood(token: string): boolean
  /** Answers a request as the token endpoint does. */
  grant(request: ProviderRequest): ProviderReply
  /** Invalidates every access token. */
  expire(): void
}

const TOKEN_SECS = 3599

/** Creates an endpoint; `first` is the initial access token. */
export function createTokens(first: string): Tokens {
  const client = { client_id: 'client-01', client_secret: 'client-secret-01', refresh_token: 'refresh-token-01' }
  const good = new Set([first])
  let granted = 0
  return {
    client,
    isGood: (token) => good.has(token),
    expire: () => good.clear(),
    grant({ method, headers, body }) {
      const form = new URLSearchParams(body.toString())
      const isForm = headers.get('content-type')?.startsWith('application/x-www-form-urlencoded')
      if (method !== 'POST' || !isForm) return { status: 400, body: { error: 'invalid_request' } }
      if (form.get('grant_type') !== 'refresh_token') return { status: 400, body: { error: 'unsupported_grant_type' } }
      if (form.get('client_id') !== client.client_id || form.get('client_secret') !== client.client_secret) {
        return { status: 401, body: { error: 'invalid_client', error_description: 'The OAuth client was not found.' } }
      }
      if (form.get('refresh_token') !== client.refresh_token) {
        return { status: 400, body: { error: 'invalid_grant', error_description: 'Token has been expired or revoked.' } }
      }
      const token = `oauth-token-granted-${++granted}`
      good.add(token)
      return { status: 200, body: { access_token: token, expires_in: TOKEN_SECS, token_type: 'Bearer' } }
    },
  }
}
