/** The channel: what each part of it is made of. */
import type { Channel, Host } from '@sluice/sdk'
import { accountOf } from './account.ts'
import type { DiscordApi } from './api.ts'
import type { DiscordConfig } from './config.ts'
import { createCursors } from './cursors.ts'
import { fetchMedia } from './fetch-media.ts'
import { createHealth } from './health.ts'
import { listen } from './listen.ts'
import { LIMITS } from './message-body.ts'
import { editMessage, postMessage, showTyping } from './send.ts'

export function discord(host: Host, config: DiscordConfig): Channel {
  const { notification_channel_id: notifications, guild_id: guild } = config
  const api: DiscordApi = { fetch: host.fetch, url: config.api_url, token: config.bot_token.reveal().trim() }
  const account = accountOf(api.token)
  const { clock, log } = host
  const cursors = createCursors(host.keyValue, notifications)
  const health = createHealth(clock)
  const listener = {
    account,
    guild,
    listenToBots: config.listen_to_bots,
    mentionOnly: config.mention_only,
    isOwnThread: (channel: string) => cursors.get(channel)?.isOurs === true,
  }
  return {
    name: 'discord',
    allow: config.allowed_users,
    limits: { text: LIMITS.text, unit: 'codepoint', attachments: { count: LIMITS.files, bytesMax: LIMITS.fileBytes } },
    notifications: {
      target: 'community',
      account,
      key: 'channels_config.discord.notification_channel_id',
      ...(notifications !== undefined && { to: { to: notifications } }),
    },
    ...(config.stream_mode === 'partial' && { draftEveryMs: config.draft_update_interval_ms }),
    ...(api.token === '' && { lacks: 'bot_token' }),
    listen: (deliver, signal) => listen({ api, listener, cursors, health, clock, log, notifications }, deliver, signal),
    async send(to, message, signal) {
      const { id, channel, thread } = await postMessage(api, to, message, { signal, log })
      health.sent()
      // What is said after it, and in its thread, is owed even if it comes while nobody is connected.
      const guild = cursors.get(channel)?.guild
      cursors.follow(channel, { after: id })
      if (thread !== undefined) cursors.follow(thread, { after: thread, isOurs: true, ...(guild !== undefined && { guild }) })
      return { id }
    },
    update: (to, sent, message, signal) => editMessage(api, to, sent, message, signal),
    typing: (to, signal) => showTyping(api, to, signal),
    fetchMedia: (attachment, options) => fetchMedia(api, attachment, options),
    health: () => health.now(),
  }
}
