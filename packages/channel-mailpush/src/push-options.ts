/** What verifies the pushes of a configuration. */
import { callProvider } from '@sluice/kit'
import type { Host } from '@sluice/sdk'
import type { MailpushConfig } from './config.ts'
import type { PushOptions } from './webhook.ts'

const FETCH_TIMEOUT_MS = 10_000

export function pushOptions({ fetch, clock }: Host, config: MailpushConfig): PushOptions {
  const { webhook_url: audience, service_account: email, jwks_url: url } = config
  const fetchKeys = async (): Promise<unknown> => {
    const { signal } = new AbortController()
    const { json } = await callProvider({ fetch, provider: 'the key server', url, method: 'GET', signal, timeoutMs: FETCH_TIMEOUT_MS })
    return json
  }
  const tokens = audience && email ? { audience, email, fetchKeys, nowMs: () => clock.nowMs() } : undefined
  return { secret: config.webhook_secret?.reveal().trim() ?? '', tokens }
}
