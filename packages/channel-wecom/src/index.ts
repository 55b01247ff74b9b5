/**
 * wecom: an AI bot over its long connection, an app by encrypted callbacks and the API, and a group robot that only sends. See `README.md`.
 */
import { Presence, SenderNames } from '@sluice/kit'
import { type Channel, defineFeature, type Host, isAllowed } from '@sluice/sdk'
import type { Way } from './address.ts'
import { WecomApi } from './api.ts'
import type { BotConnection } from './bot.ts'
import { appOf, isEmpty, missingIn, type WecomConfig, wecomSection } from './config.ts'
import { MARKUP } from './markup.ts'
import type { Sender } from './send.ts'
import { createWebhook } from './webhook.ts'

/**
 * The longest text of each way in bytes: WeCom takes 20,480, 4,096 and 2,048, and markdown grows a little when its mentions are
 * neutralised. The shortest of the configured ways applies.
 */
const TEXT_BYTES: Readonly<Record<Way, number>> = { bot: 20_000, robot: 4000, app: 2048 }
const FILES = { count: 10, bytesMax: 20 * 1024 * 1024 }

export default defineFeature({
  id: 'channel-wecom',
  section: wecomSection,
  build(host, config) {
    if (!config.enabled) return { disabledReason: '`enabled` is false' }
    // No key is required, so an absent section is valid.
    if (isEmpty(config)) return { disabledReason: `[channels_config.wecom] is not configured; it needs ${missingIn(config)}` }
    return { channels: [wecomChannel(host, config)] }
  },
})

function wecomChannel(host: Host, config: WecomConfig): Channel {
  const api = new WecomApi(host, config)
  const app = appOf(config)
  const hasBot = config.bot_id !== undefined && config.bot_secret !== undefined
  const ways: Way[] = [
    ...(hasBot ? ['bot' as const] : []),
    ...(app ? ['app' as const] : []),
    ...(config.webhook_key ? ['robot' as const] : []),
  ]
  const presence = new Presence(host, 'wecom documents no way to get messages that came while the bot was not connected')
  /** A daemon without this channel does not load the code of connections and requests. */
  let loading: Promise<BotConnection> | undefined
  const bot = (): Promise<BotConnection> => {
    loading ??= import('./bot.ts').then(({ BotConnection }) => new BotConnection(host, config, presence))
    return loading
  }
  let sending: Promise<Sender> | undefined
  const sender = (): Promise<Sender> => {
    sending ??= import('./send.ts').then(({ Sender }) => new Sender(api, bot, host.clock, ways))
    return sending
  }
  const missing = missingIn(config)
  const names = new SenderNames({
    host,
    channel: 'wecom',
    isAllowed: (sender) => isAllowed(config.allowed_users, sender),
    read: ({ sender }, signal) => api.nameOf(sender, signal),
  })
  return {
    name: 'wecom',
    allow: config.allowed_users,
    ...(app && { webhook: createWebhook({ ...app, nowMs: () => host.clock.nowMs(), naming: (message) => names.named(message) }) }),
    ...(hasBot && { listen: async (deliver, context) => (await bot()).listen(deliver, context), cursors: presence }),
    markup: ways.includes('app') ? { shows: [] } : MARKUP,
    limits: { text: Math.min(...ways.map((way) => TEXT_BYTES[way]), TEXT_BYTES.bot), unit: 'byte', attachments: FILES },
    send: async (to, message, signal) => (await sender()).send(to, message, signal),
    fetchMedia: async (attachment, { bytesMax, signal }) => (await import('./media.ts')).fetchMedia(api, attachment, bytesMax, signal),
    ...(missing !== undefined && { missingConfig: missing }),
  }
}
