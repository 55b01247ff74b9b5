/** dingtalk: robots of DingTalk in stream mode; replies over the session of a message, or as messages of the robot. See `README.md`. */
import { Presence } from '@sluice/kit'
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { DingtalkApi } from './api.ts'
import { type DingtalkConfig, dingtalkSection } from './config.ts'
import type { Connection } from './connection.ts'
import { MARKUP } from './markup.ts'

/** DingTalk takes 20,000 bytes, of which markup, a title and a mention are a part. */
const TEXT_CHARS_MAX = 4000
const FILES = { count: 10, bytesMax: 20 * 1024 * 1024 }

export default defineFeature({
  id: 'channel-dingtalk',
  section: dingtalkSection,
  build: (host, config) => (config.enabled ? { channels: [dingtalkChannel(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function dingtalkChannel(host: Host, config: DingtalkConfig): Channel {
  const api = new DingtalkApi(host, config)
  const presence = new Presence(host, 'dingtalk promises to keep no messages for a robot that is not connected')
  /** A daemon without this channel does not load the code of connections. */
  let loading: Promise<Connection> | undefined
  const connection = (): Promise<Connection> => {
    loading ??= import('./connection.ts').then(({ Connection }) => new Connection(host, api, presence))
    return loading
  }
  return {
    name: 'dingtalk',
    allow: config.allowed_users,
    listen: async (deliver, context) => (await connection()).listen(deliver, context),
    cursors: presence,
    markup: MARKUP,
    limits: { text: TEXT_CHARS_MAX, unit: 'utf16', attachments: FILES },
    send: async (to, message, signal) => (await import('./send.ts')).sendMessage(api, host.clock, to, message, signal),
    fetchMedia: async (attachment, { bytesMax, signal }) => (await import('./media.ts')).fetchMedia(api, attachment, bytesMax, signal),
  }
}
