/**
 * The `discord` channel: messages arrive over the Discord gateway, replies go out over the REST API. See
 * `README.md`.
 */
import { type Address, type Channel, defineFeature, type Host, type Outbound, type Sent } from '@sluice/sdk'
import type { DiscordApi } from './api.ts'
import { offerCommands } from './command-menu.ts'
import { accountOf, type DiscordConfig, discordSection } from './config.ts'
import type { Connection } from './connection.ts'
import { createCursors } from './cursors.ts'
import { MARKUP } from './markup.ts'
import { fetchMedia } from './media.ts'
import type { ListenSettings } from './parse.ts'
import { editMessage, LIMITS, postMessage, showTyping } from './send.ts'

/** For "the past few minutes" a repeated nonce is answered with the message that exists: https://docs.discord.com/developers/resources/message */
const NONCE_MS = 120_000

export default defineFeature({
  id: 'channel-discord',
  section: discordSection,
  build: (host, config) => (config.enabled ? { channels: [createDiscord(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function createDiscord(host: Host, config: DiscordConfig): Channel {
  const { notification_channel_id: notificationChannel } = config
  const api: DiscordApi = { fetch: host.fetch, url: config.api_url, token: config.bot_token.reveal().trim() }
  const account = accountOf(api.token)
  const cursors = createCursors(host.keyValue, notificationChannel)
  const settings: ListenSettings = {
    account,
    guild: config.guild_id,
    listenToBots: config.listen_to_bots,
    mentionOnly: config.mention_only,
    isOwnThread: (channel) => cursors.get(channel)?.isOurs === true,
  }
  /** A daemon without this channel does not load the code of connections. */
  let loading: Promise<Connection> | undefined
  const connection = () => {
    loading ??= import('./connection.ts').then(({ Connection }) => new Connection(host, api, settings, cursors, notificationChannel))
    return loading
  }

  const send = async (to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> => {
    const { id, channel, thread } = await postMessage(api, to, message, host.log, signal)
    // Follows the conversation and the new thread, so that a reply written while the bot is disconnected is fetched later.
    const guild = cursors.get(channel)?.guild
    cursors.follow(channel, { after: id })
    if (thread !== undefined) cursors.follow(thread, { after: thread, isOurs: true, ...(guild !== undefined && { guild }) })
    return { id }
  }

  return {
    name: 'discord',
    allow: config.allowed_users,
    markup: MARKUP,
    limits: {
      text: LIMITS.text,
      unit: 'codepoint',
      dedupesForMs: NONCE_MS,
      attachments: { count: LIMITS.files, bytesMax: LIMITS.fileBytes },
    },
    notifications: {
      target: 'community',
      opensThreads: true,
      account,
      key: 'channels_config.discord.notification_channel_id',
      ...(notificationChannel !== undefined && { to: { to: notificationChannel } }),
    },
    ...(config.stream_mode === 'partial' && { draftEveryMs: config.draft_update_interval_ms }),
    ...(api.token === '' && { missingConfig: 'bot_token' }),
    listen: async (deliver, context) => (await connection()).listen(deliver, context),
    cursors,
    send,
    update: (to, sent, message, signal) => editMessage(api, to, sent, message, signal),
    offerCommands: (commands, signal) => offerCommands(api, commands, signal),
    typing: (to, signal) => showTyping(api, to, signal),
    fetchMedia: (attachment, { bytesMax, signal }) => fetchMedia(api.fetch, api.url, attachment, bytesMax, signal),
  }
}
