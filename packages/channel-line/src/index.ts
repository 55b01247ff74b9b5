/** The `line` channel: signed webhooks in, the Messaging API out. See `README.md`. */
import { AppError, type Channel, defineFeature, type Host, type ReplyWindow } from '@sluice/sdk'
import { LineApi } from './api.ts'
import { type LineConfig, lineSection } from './config.ts'
import { MARKUP } from './markup.ts'
import { fetchMedia } from './media.ts'
import { senderNames } from './names.ts'
import { sendMessage, showLoading, TEXT_MAX } from './send.ts'
import { createWebhook } from './webhook.ts'

/**
 * A reply token works once, within one minute after the webhook. A few seconds are left for the way. Source:
 * https://developers.line.biz/en/reference/messaging-api/#send-reply-message
 */
const REPLY_WINDOW: ReplyWindow = { seconds: 50, count: 1, after: 'proactive' }

export default defineFeature({
  id: 'channel-line',
  section: lineSection,
  build: (host, config) => (config.enabled ? { channels: [createLine(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function createLine(host: Host, config: LineConfig): Channel {
  const api = new LineApi(host, config)
  const isOpen = config.dm_policy === 'open'
  const allow = isOpen ? ['*'] : config.allowed_users
  const names = senderNames(api, allow)
  let lastSentAtMs: number | undefined
  let problem: string | undefined

  return {
    name: 'line',
    allow,
    ...(config.channel_access_token.reveal().trim() === '' && { missingConfig: 'channel_access_token' }),
    webhook: createWebhook({
      secret: config.channel_secret?.reveal().trim() ?? '',
      groupPolicy: config.group_policy,
      // The daemon has one allowlist for all conversations, so the list for groups is checked here if everyone may write directly.
      groupSenders: isOpen ? config.allowed_users : undefined,
      naming: (message) => names.named(message),
    }),
    markup: MARKUP,
    limits: { text: TEXT_MAX, unit: 'utf16', replyWindow: REPLY_WINDOW },
    async send(to, message, signal) {
      try {
        const sent = await sendMessage(api, to, message, signal)
        lastSentAtMs = host.clock.nowMs()
        problem = undefined
        return sent
      } catch (error) {
        if (error instanceof AppError && (error.code === 'unavailable' || error.code === 'forbidden')) problem = error.message
        throw error
      }
    },
    typing: (to, signal) => showLoading(api, to, signal),
    fetchMedia: (attachment, { bytesMax, signal }) => fetchMedia(api, attachment, bytesMax, signal),
    health: () => ({
      state: problem === undefined ? 'ok' : 'down',
      ...(problem !== undefined && { detail: problem }),
      ...(lastSentAtMs !== undefined && { lastSentAtMs }),
    }),
  }
}
