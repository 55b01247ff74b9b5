/**
 * The `telegram` channel: a bot that polls the Bot API for messages and button presses and replies in their chats. See
 * `README.md`.
 */
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { BotApi, botIdOf } from './api.ts'
import { offerCommands } from './command-menu.ts'
import { type TelegramConfig, telegramSection } from './config.ts'
import type { Connection } from './connection.ts'
import { PollCursor } from './cursor.ts'
import { KnownNames, normaliseUser } from './known-names.ts'
import { LiveDrafts } from './live-drafts.ts'
import { MARKUP } from './markup.ts'
import { fetchMedia, UPLOAD_BYTES_MAX } from './media.ts'
import { editMessage, MessageSender, showTyping } from './send.ts'

const TEXT_MAX = 4096
const FILES_MAX = 10

export default defineFeature({
  id: 'channel-telegram',
  section: telegramSection,
  build: (host, config) => (config.enabled ? { channels: [createTelegram(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function createTelegram(host: Host, config: TelegramConfig): Channel {
  const api = new BotApi(host.fetch, config.api_url, config.bot_token)
  const account = botIdOf(config.bot_token)
  const names = new KnownNames(host, config.allowed_users)
  const cursors = new PollCursor(host.keyValue)
  /** A daemon without this channel does not load the code of connections. */
  let loading: Promise<Connection> | undefined
  const connection = () => {
    loading ??= import('./connection.ts').then(({ Connection }) => new Connection(host, api, names, cursors, config.mention_only))
    return loading
  }
  const sender = new MessageSender(host, api)
  const liveDrafts = new LiveDrafts(host, api)

  return {
    name: 'telegram',
    ...(account === undefined && { missingConfig: 'a bot_token of the form <number>:<letters>' }),
    allow: config.allowed_users,
    normalise: normaliseUser,
    matches: (entry, sender) => names.matches(entry, sender),
    listen: async (deliver, context) => (await connection()).listen(deliver, context),
    cursors,
    send: (to, message, signal) => sender.send(to, message, signal),
    update: (to, sent, message, signal) => editMessage(api, to, sent, message, signal),
    markup: MARKUP,
    limits: { text: TEXT_MAX, unit: 'utf16', attachments: { count: FILES_MAX, bytesMax: UPLOAD_BYTES_MAX } },
    notifications: {
      target: 'messenger',
      opensThreads: false,
      account: account ?? '',
      ...(config.notification_chat_id !== undefined && { to: { to: config.notification_chat_id } }),
      key: 'channels_config.telegram.notification_chat_id',
    },
    ...(config.stream_mode === 'partial' && { draftEveryMs: config.draft_update_interval_ms }),
    preview: (to, message, signal) => liveDrafts.show(to, message, signal),
    typing: (to, signal) => showTyping(api, to, signal),
    offerCommands: (commands, signal) => offerCommands(api, commands, signal),
    fetchMedia: (attachment, { bytesMax, signal }) => fetchMedia(api, attachment, bytesMax, signal),
  }
}
