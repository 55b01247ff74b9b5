/** chatapp in cloud mode: the WhatsApp Business Cloud API; signed webhooks in, graph API out. See `README.md`. */
import { allowlistForm } from '@sluice/kit/phone-numbers'
import { AppError, type Channel, defineFeature, type Host, type ReplyWindow } from '@sluice/sdk'
import { createGraph } from './api.ts'
import { type CloudConfig, chatappSection, isCloud } from './config.ts'
import { MARKUP } from './markup.ts'
import { fetchMedia } from './media.ts'
import { sendMessage, showTyping } from './send.ts'
import { createWebhook } from './webhook.ts'

const TEXT_MAX = 4096
/** WhatsApp takes documents of up to 100 MB, but all files of a reply are in memory at the same time. */
const FILES = { count: 10, bytesMax: 16 * 1_048_576 }
/**
 * The customer service window: free texts are accepted for 24 hours after the person's message. Source:
 * https://developers.facebook.com/docs/whatsapp/cloud-api/guides/send-messages#customer-service-windows
 */
const REPLY_WINDOW: ReplyWindow = { seconds: 86_400, after: 'closed' }

export default defineFeature({
  id: 'channel-chatapp',
  section: chatappSection,
  build(host, config) {
    const account = config.phone_number_id?.trim()
    if (!config.enabled) return { disabledReason: '`enabled` is false' }
    if (!account) return { disabledReason: '`phone_number_id`, which activates cloud mode, is not set' }
    if (!isCloud(config)) return { disabledReason: '`access_token` or `verify_token`, which cloud mode needs, is not set' }
    return { channels: [chatapp(host, config, account)] }
  },
})

/** `account` is the platform's id of our number. */
function chatapp(host: Host, config: CloudConfig, account: string): Channel {
  const graph = createGraph(host, config)
  let lastSentAtMs: number | undefined
  let problem: string | undefined

  return {
    name: 'chatapp',
    allow: config.allowed_numbers,
    normalise: allowlistForm,
    webhook: createWebhook({
      secret: config.app_secret?.reveal().trim() ?? '',
      verifyToken: config.verify_token.reveal().trim(),
      account,
    }),
    // The platform does not say whether it counts characters or UTF-16 units. A text never has fewer UTF-16 units.
    markup: MARKUP,
    limits: { text: TEXT_MAX, unit: 'utf16', replyWindow: REPLY_WINDOW, attachments: FILES },
    async send(to, message, signal) {
      try {
        const sent = await sendMessage({ graph, clock: host.clock, account }, to, message, signal)
        lastSentAtMs = host.clock.nowMs()
        problem = undefined
        return sent
      } catch (error) {
        if (error instanceof AppError && error.code === 'unavailable') problem = error.message
        throw error
      }
    },
    typing: (to, signal) => showTyping({ graph, account }, to, signal),
    fetchMedia: (attachment, { bytesMax, signal }) => fetchMedia(graph, attachment, bytesMax, signal),
    health: () => ({
      state: problem === undefined ? 'ok' : 'down',
      ...(problem !== undefined && { detail: problem }),
      ...(lastSentAtMs !== undefined && { lastSentAtMs }),
    }),
  }
}
