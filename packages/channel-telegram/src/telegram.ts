/** The channel: the poller brings what people write and press, messages go out by the Bot API. */
import type { Channel, Host } from '@sluice/sdk'
import { botIdOf, createBotApi } from './bot-api.ts'
import type { TelegramConfig } from './config.ts'
import { editMessage } from './edit-message.ts'
import { fetchMedia } from './fetch-media.ts'
import { createKnownNames, normaliseUser } from './known-names.ts'
import { createPoller } from './poll-updates.ts'
import { chatParams, sendMessage } from './send-message.ts'
import { FILE_BYTES_MAX } from './upload.ts'

const TEXT_MAX = 4096
const FILES_MAX = 10

export function telegram(host: Host, config: TelegramConfig): Channel {
  const api = createBotApi({ fetch: host.fetch, apiUrl: config.api_url, token: config.bot_token })
  const account = botIdOf(config.bot_token)
  const names = createKnownNames(host, config.allowed_users)
  const poller = createPoller({ host, api, names, mentionOnly: config.mention_only })
  let lastSentAtMs: number | undefined

  return {
    name: 'telegram',
    ...(account === undefined && { lacks: 'a bot_token of the form <number>:<letters>' }),
    allow: config.allowed_users,
    normalise: normaliseUser,
    matches: names.matches,
    listen: poller.listen,
    async send(to, message, signal) {
      const sent = await sendMessage(to, message, { api, clock: host.clock, log: host.log, signal })
      lastSentAtMs = host.clock.nowMs()
      return sent
    },
    update: (to, sent, message, signal) => editMessage(api, { to, sent, message, signal }),
    limits: { text: TEXT_MAX, unit: 'utf16', attachments: { count: FILES_MAX, bytesMax: FILE_BYTES_MAX } },
    notifications: {
      target: 'messenger',
      account: account ?? '',
      ...(config.notification_chat_id !== undefined && { to: { to: config.notification_chat_id } }),
      key: 'channels_config.telegram.notification_chat_id',
    },
    ...(config.stream_mode === 'partial' && { draftEveryMs: config.draft_update_interval_ms }),
    async typing({ to, thread }, signal) {
      await api.call('sendChatAction', { ...chatParams({ to, ...(thread !== undefined && { thread }) }), action: 'typing' }, { signal })
    },
    fetchMedia: (attachment, options) => fetchMedia(api, attachment, options),
    health: () => ({ ...poller.health(), ...(lastSentAtMs !== undefined && { lastSentAtMs }) }),
  }
}
