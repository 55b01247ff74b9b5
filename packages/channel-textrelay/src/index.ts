/** textrelay: iMessage, RCS and SMS through the Linq Partner API; signed webhooks in, REST API out. See `README.md`. */
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { type TextrelayConfig, textrelaySection } from './config.ts'
import { normaliseHandle } from './handle.ts'
import { MARKUP } from './markup.ts'
import { fetchMedia } from './media.ts'
import { sendMessage, showTyping } from './send.ts'
import { createWebhook } from './webhook.ts'

/** The platform publishes no limit; long replies are easier to read in parts. */
const TEXT_CHARS_MAX = 4000
/** The platform takes files of up to 100 MB, but all files of a reply are in memory at the same time. */
const FILES = { count: 10, bytesMax: 16 * 1_048_576 }

export default defineFeature({
  id: 'channel-textrelay',
  section: textrelaySection,
  build: (host, config) => (config.enabled ? { channels: [textrelay(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function textrelay(host: Host, config: TextrelayConfig): Channel {
  const { api_url: url, api_token: token, from_phone: fromPhone } = config
  const api = { fetch: host.fetch, publicFetch: host.publicFetch, url, token, fromPhone }
  return {
    name: 'textrelay',
    allow: config.allowed_senders,
    normalise: normaliseHandle,
    markup: MARKUP,
    limits: { text: TEXT_CHARS_MAX, unit: 'utf16', dedupesClientIds: true, attachments: FILES },
    webhook: createWebhook({ secret: config.signing_secret?.reveal().trim() ?? '', fromPhone }),
    send: (to, message, signal) => sendMessage(api, to, message, signal),
    typing: (to, signal) => showTyping(api, to, signal),
    fetchMedia: (attachment, { bytesMax, signal }) => fetchMedia(host, attachment, bytesMax, signal),
  }
}
