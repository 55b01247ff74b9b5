/** qq: bots of QQ's official platform. Events arrive over the gateway or by webhook; replies leave through the REST API. See `README.md`. */
import { Presence } from '@sluice/kit'
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { replyWindow } from './address.ts'
import { QqApi } from './api.ts'
import { type QqConfig, qqSection } from './config.ts'
import type { Connection } from './connection.ts'
import { MARKDOWN, MARKUP } from './markup.ts'
import { BotKey } from './proof.ts'
import type { Sender } from './send.ts'
import { Session } from './session.ts'
import { createWebhook } from './webhook.ts'

/** QQ names no limit; it has refused texts from about 4,000 characters on. */
const TEXT_CHARS_MAX = 2000
/** With a text, three files fit into the answers that one message may have. */
const FILES = { count: 3, bytesMax: 20 * 1024 * 1024 }

export default defineFeature({
  id: 'channel-qq',
  section: qqSection,
  build: (host, config) => (config.enabled ? { channels: [qqChannel(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function qqChannel(host: Host, config: QqConfig): Channel {
  const api = new QqApi(host, config)
  const session = new Session(
    host.keyValue,
    config.app_id,
    new Presence(host, 'qq could not resume the session, and keeps no other messages'),
  )
  /** A daemon without this channel does not load the code of connections and requests. */
  let loading: Promise<Connection> | undefined
  const connection = (): Promise<Connection> => {
    loading ??= import('./connection.ts').then(({ Connection }) => new Connection(host, api, session))
    return loading
  }
  let sending: Promise<Sender> | undefined
  const sender = (): Promise<Sender> => {
    sending ??= import('./send.ts').then(({ Sender }) => new Sender(api, host.clock))
    return sending
  }
  return {
    name: 'qq',
    allow: config.allowed_users,
    webhook: createWebhook({ appId: config.app_id, key: new BotKey(() => config.app_secret.reveal()) }),
    ...(config.mode === 'websocket' && {
      listen: async (deliver, context) => (await connection()).listen(deliver, context),
      cursors: session,
    }),
    markup: config.markdown ? MARKDOWN : MARKUP,
    limits: { text: TEXT_CHARS_MAX, unit: 'utf16', attachments: FILES, replyWindow },
    send: async (to, message, signal) => (await sender()).send(to, message, signal),
    fetchMedia: async (attachment, { bytesMax, signal }) => (await import('./media.ts')).fetchMedia(api, attachment, bytesMax, signal),
  }
}
