/** bizchat: WhatsApp through the WATI API; webhooks in, REST API out. See `README.md`. */
import { allowlistForm } from '@sluice/kit/phone-numbers'
import { type Channel, defineFeature, type Host, type ReplyWindow } from '@sluice/sdk'
import { type BizchatConfig, bizchatSection } from './config.ts'
import { MARKUP } from './markup.ts'
import { fetchMedia } from './media.ts'
import { type Api, sendMessage } from './send.ts'
import { createWebhook } from './webhook.ts'

const TEXT_CHARS_MAX = 4096
/** WhatsApp's limit for recordings and videos; it takes larger documents only. */
const FILES = { count: 10, bytesMax: 16 * 1_048_576 }
/** WhatsApp's customer service window: free texts are accepted for 24 hours after the person's message. */
const REPLY_WINDOW: ReplyWindow = { seconds: 86_400, after: 'closed' }
/** The account of events that do not name the receiving number. */
const DEFAULT_ACCOUNT = 'default'

export default defineFeature({
  id: 'channel-bizchat',
  section: bizchatSection,
  build: (host, config) => (config.enabled ? { channels: [bizchat(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function bizchat(host: Host, config: BizchatConfig): Channel {
  const api: Api = { fetch: host.fetch, url: config.api_url, token: config.api_token, tenant: config.tenant_id }
  return {
    name: 'bizchat',
    allow: config.allowed_numbers,
    normalise: allowlistForm,
    markup: MARKUP,
    // The API returns an id of its own, and a quote names the id of WhatsApp.
    quotesByOtherIds: true,
    limits: { text: TEXT_CHARS_MAX, unit: 'utf16', replyWindow: REPLY_WINDOW, attachments: FILES },
    webhook: createWebhook({ secret: config.webhook_secret?.reveal().trim() ?? '', account: config.tenant_id ?? DEFAULT_ACCOUNT }),
    send: (to, message, signal) => sendMessage(api, to, message, { clock: host.clock, signal }),
    fetchMedia: (attachment, { bytesMax, signal }) => fetchMedia(host, api, attachment, bytesMax, signal),
  }
}
