/** webhook: any service that posts signed JSON and accepts it; see `README.md`. */
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { type WebhookConfig, webhookSection } from './config.ts'
import { fetchMedia } from './media.ts'
import { type Receiver, sendMessage } from './send.ts'
import { createWebhook } from './webhook.ts'

const TEXT_CHARS_MAX = 32_000
const ATTACHMENTS = { count: 10, bytesMax: 10 * 1024 * 1024 }

export default defineFeature({
  id: 'channel-webhook',
  section: webhookSection,
  build: (host, config) => (config.enabled ? { channels: [channel(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function channel(host: Host, config: WebhookConfig): Channel {
  const secret = config.secret?.reveal().trim() ?? ''
  const receiver: Receiver = {
    fetch: host.fetch,
    clock: host.clock,
    url: config.send_url,
    method: config.send_method,
    authorization: config.auth_header,
    secret,
  }
  return {
    name: 'webhook',
    allow: config.allowed_senders,
    webhook: createWebhook({ secret, handshakes: config.handshake }),
    limits: {
      text: TEXT_CHARS_MAX,
      unit: 'codepoint',
      attachments: ATTACHMENTS,
      ...(config.receiver_deduplicates && { dedupesClientIds: true }),
    },
    send: (to, message, signal) => sendMessage(receiver, to, message, signal),
    fetchMedia: (attachment, { bytesMax, signal }) => fetchMedia(host, attachment, bytesMax, signal),
  }
}
