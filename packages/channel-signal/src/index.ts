/** signal: Signal through a `signal-cli` that runs next to Sluice; events in, JSON-RPC out. See `README.md`. */
import { type Channel, defineFeature, type Host, normaliseE164 } from '@sluice/sdk'
import { type SignalConfig, signalSection } from './config.ts'
import { Connection } from './connection.ts'
import { EventCursor } from './event-cursor.ts'
import { MARKUP } from './markup.ts'
import { fetchMedia } from './media.ts'
import type { Rpc } from './rpc.ts'
import { sendMessage, sendTyping } from './send.ts'

/** A longer text becomes a file. */
const TEXT_BYTES_MAX = 2000
const ATTACHMENTS = { count: 10, bytesMax: 50 * 1024 * 1024 }

export default defineFeature({
  id: 'channel-signal',
  section: signalSection,
  build: (host, config) => (config.enabled ? { channels: [signalChannel(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function signalChannel(host: Host, config: SignalConfig): Channel {
  const { http_url: url, account } = config
  const rpc: Rpc = { fetch: host.fetch, url, account }
  const cursor = new EventCursor(host.keyValue)
  const connection = new Connection(host, url, config, cursor)
  return {
    name: 'signal',
    allow: config.allowed_from,
    normalise: (sender) => (sender.startsWith('+') ? normaliseE164(sender) : sender.toLowerCase()),
    listen: (deliver, context) => connection.listen(deliver, context),
    cursors: cursor,
    markup: MARKUP,
    limits: { text: TEXT_BYTES_MAX, unit: 'byte', attachments: ATTACHMENTS },
    send: (to, message, signal) => sendMessage(rpc, to, message, signal),
    typing: (to, signal) => sendTyping(rpc, to, signal),
    fetchMedia: (attachment, { bytesMax, signal }) => fetchMedia(rpc, attachment, bytesMax, signal),
  }
}
