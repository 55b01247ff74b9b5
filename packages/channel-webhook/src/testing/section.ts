/** Starts the receiver and connects the channel to it. */
import type { Connected } from '@sluice/testkit/channel-testing'
import { startWebhookFake, WEBHOOK_AUTHORIZATION, WEBHOOK_SECRET, type WebhookFake } from './fake.ts'

export async function connect(): Promise<Connected<WebhookFake>> {
  const fake = await startWebhookFake()
  const section = { send_url: `${fake.url}/replies`, auth_header: WEBHOOK_AUTHORIZATION, secret: WEBHOOK_SECRET, allowed_senders: ['*'] }
  return { fake, section }
}
