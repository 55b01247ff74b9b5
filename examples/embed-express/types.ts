// The same use in TypeScript: a webhook as a pure function from a request to messages.
import { createWebhook, type TextrelayWebhookOptions } from '@sluice/channel-textrelay/webhook'
import { type Inbound, type Raw, rawRequest } from '@sluice/sdk/webhook'
import type { Request } from 'express'

const options: TextrelayWebhookOptions = { secret: 'a-secret-for-tries', fromPhone: '+15550100' }
const webhook = createWebhook(options)

/** Throws `unauthorized` for a request that the platform did not sign. */
export async function messagesIn(request: Request): Promise<readonly Inbound[]> {
  const raw: Raw = rawRequest({ url: request.originalUrl, headers: request.headers, body: request.body as Uint8Array })
  await webhook.verify(raw)
  return webhook.parse(raw)
}
