/**
 * The `slack` channel: events and button presses arrive in socket mode, replies go out over the Web API. See
 * `README.md`.
 */
import { type Address, type Channel, defineFeature, type Host, type Outbound, type Sent } from '@sluice/sdk'
import { SlackApi } from './api.ts'
import { accountOf, type SlackConfig, slackSection } from './config.ts'
import type { Connection } from './connection.ts'
import { createCursors, scopeOf } from './cursors.ts'
import { MARKUP } from './markup.ts'
import { fetchMedia } from './media.ts'
import { sendMessage, ThreadStatus, updateMessage } from './send.ts'

/** Slack recommends this limit for one message and truncates at ten times as much. */
const TEXT_MAX = 4000
const FILES = { count: 10, bytesMax: 26_214_400 }

export default defineFeature({
  id: 'channel-slack',
  section: slackSection,
  build: (host, config) => (config.enabled ? { channels: [createSlack(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function createSlack(host: Host, config: SlackConfig): Channel {
  const account = accountOf(config.app_token)
  const api = new SlackApi(host, config)
  const cursors = createCursors(host.keyValue)
  /** A daemon without this channel does not load the code of connections. */
  let loading: Promise<Connection> | undefined
  const connection = () => {
    loading ??= import('./connection.ts').then(({ Connection }) => new Connection(host, config, account, api, cursors))
    return loading
  }
  const status = new ThreadStatus(api)
  const { notification_channel_id: notificationChannel } = config

  const send = async (to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> => {
    const sent = await sendMessage(api, to, message, signal)
    // Follows the thread in which replies to this message are written.
    const thread = to.thread ?? (sent.isMessage ? sent.id : undefined)
    if (thread !== undefined) cursors.follow(scopeOf({ channel: to.to, thread }), { after: thread })
    return { id: sent.id }
  }

  return {
    name: 'slack',
    allow: config.allowed_users,
    listen: async (deliver, context) => (await connection()).listen(deliver, context),
    cursors,
    send,
    update: (to, sent, message, signal) => updateMessage(api, to, sent, message, signal),
    markup: MARKUP,
    limits: { text: TEXT_MAX, unit: 'utf16', attachments: FILES },
    notifications: {
      target: 'workspace',
      opensThreads: true,
      account,
      key: 'channels_config.slack.notification_channel_id',
      ...(notificationChannel !== undefined && { to: { to: notificationChannel } }),
    },
    ...(config.stream_mode === 'partial' && { draftEveryMs: config.draft_update_interval_ms }),
    typing: (to, signal) => status.show(to, signal),
    fetchMedia: (attachment, { bytesMax, signal }) => fetchMedia(api, attachment, bytesMax, signal),
  }
}
