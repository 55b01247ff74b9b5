/** What verifies the pushes of a configuration. */
import type { Host } from '@sluice/sdk'
import type { MailpushConfig } from './config.ts'
import type { PushOptions } from './webhook.ts'

export function pushOptions({ fetch, clock }: Host, config: MailpushConfig): PushOptions {
  const { webhook_url: audience, service_account: email, jwks_url: jwksUrl } = config
  const tokens = audience && email ? { audience, email, jwksUrl, fetch, nowMs: () => clock.nowMs() } : undefined
  return { secret: config.webhook_secret?.reveal().trim() ?? '', tokens }
}
