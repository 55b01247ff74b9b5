/** The channel: what comes in by its webhook, what goes out to a room. */
import type { Channel, Host, Webhook } from '@sluice/sdk'
import type { RoomchatConfig } from './config.ts'
import { parseMessages } from './parse-messages.ts'
import { sampleRequest } from './sample-request.ts'
import { sendMessage } from './send-message.ts'
import { normaliseSender } from './sender.ts'
import { type Server, serverOf } from './server.ts'
import { verify } from './verify.ts'

const BODY_BYTES_MAX = 256 * 1024
const TEXT_MAX = 32_000

export function roomchat(host: Host, config: RoomchatConfig): Channel {
  const server = serverOf(config)
  return {
    name: 'roomchat',
    allow: config.allowed_users,
    normalise: normaliseSender,
    webhook: webhook(server, config.bot_name),
    // The server shows a client id to whoever asks, but takes a second message with it like the first.
    limits: { text: TEXT_MAX, unit: 'codepoint' },
    send: (to, message, signal) => sendMessage(server, { fetch: host.fetch, to, message, signal }),
  }
}

const webhook = (server: Server, botName: string): Webhook => ({
  path: '/roomchat',
  bodyBytesMax: BODY_BYTES_MAX,
  ...(!server.secret && { unsigned: 'webhook_secret' }),
  verify: (raw) => verify(raw, server),
  parse: ({ body }) => parseMessages(body, { account: server.account, botName }),
  sample: (sample) => sampleRequest(sample, server),
})
