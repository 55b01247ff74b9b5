/** Requests the tenant access token, which authorizes every call. */
import { callProvider, type GrantedToken, nothingSent } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type Host } from '@sluice/sdk'
import type { WorkchatConfig } from './config.ts'
import { refusalIn } from './refusal.ts'

const TIMEOUT_MS = 15_000
/** The credentials are wrong, or the app is disabled. */
const CREDENTIALS = new Set([10003, 10012, 10013, 10014, 10015, 10017])

/** Nothing can be sent until the operator corrects `app_id` or `app_secret`. */
export class CredentialsError extends AppError {
  constructor(message: string) {
    super('forbidden', message)
  }
}

/** Throws `forbidden` when the credentials are refused, and `unavailable` or `rate_limited` when a later request may succeed. */
export async function requestToken(host: Host, { app_id, app_secret }: WorkchatConfig, baseUrl: string): Promise<GrantedToken> {
  const { json } = await callProvider({
    fetch: host.fetch,
    provider: 'workchat',
    url: `${baseUrl}/open-apis/auth/v3/tenant_access_token/internal`,
    method: 'POST',
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: { app_id, app_secret: app_secret.reveal().trim() },
    // The callers share the request, so none of them may cut it off.
    signal: new AbortController().signal,
    timeoutMs: TIMEOUT_MS,
  }).catch((error: unknown) => {
    throw nothingSent(error)
  })
  const refusal = refusalIn(json)
  if (refusal && CREDENTIALS.has(refusal.code)) {
    throw new CredentialsError(`workchat refused app_id or app_secret (${refusal.code}: ${refusal.message})`)
  }
  const { tenant_access_token: token, expire } = members(json)
  if (refusal || text(token) === '') throw new AppError('unavailable', `workchat gave no access token (${refusal?.code ?? 'no token'})`)
  return { token: text(token), lastsSecs: typeof expire === 'number' && expire > 0 ? expire : 0 }
}
