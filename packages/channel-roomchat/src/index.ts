/** roomchat: rooms of Nextcloud Talk; signed bot webhooks in, signed bot calls out. See `README.md`. */
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { type RoomchatConfig, roomchatSection } from './config.ts'
import { MARKUP } from './markup.ts'
import { normaliseSender } from './parse.ts'
import { react, sendMessage } from './send.ts'
import { serverOf } from './server.ts'
import { createWebhook } from './webhook.ts'

const TEXT_MAX = 32_000

export default defineFeature({
  id: 'channel-roomchat',
  section: roomchatSection,
  build: (host, config) => (config.enabled ? { channels: [roomchat(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function roomchat(host: Host, config: RoomchatConfig): Channel {
  const server = serverOf(config, host.fetch)
  return {
    name: 'roomchat',
    allow: config.allowed_users,
    normalise: normaliseSender,
    webhook: createWebhook({
      secret: server.secret?.reveal().trim() ?? '',
      backends: server.backends,
      account: server.account,
      botName: config.bot_name,
    }),
    // The server accepts a second message with the same reference id, so it does not drop repeats.
    markup: MARKUP,
    limits: { text: TEXT_MAX, unit: 'codepoint' },
    send: (to, message, signal) => sendMessage(server, to, message, signal),
    ...(config.ack_reactions && server.secret && { acknowledge: (message, signal) => react(server, message, signal) }),
  }
}
