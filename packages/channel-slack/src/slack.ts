/** The channel: socket mode in, the Web API out. */
import type { Address, Channel, Host, Outbound, Sent } from '@sluice/sdk'
import { accountOf } from './account.ts'
import type { SlackConfig } from './config.ts'
import { createCursors } from './cursors.ts'
import { fetchMedia } from './fetch-media.ts'
import { createListener } from './listener.ts'
import { sendMessage, updateMessage } from './send-message.ts'
import { createSlackApi } from './slack-api.ts'
import { createTyping } from './typing.ts'

/** Slack's own advice for one message; it cuts at ten times as much. */
const TEXT_MAX = 4000
const FILES = { count: 10, bytesMax: 26_214_400 }

export function createSlack(host: Host, config: SlackConfig): Channel {
  const account = accountOf(config.app_token)
  const api = createSlackApi(host, config)
  const cursors = createCursors(host)
  const { listen, health } = createListener({ host, config, account, api, cursors })
  const { notification_channel_id: prompts } = config
  let lastSentAtMs: number | undefined

  const send = async (to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> => {
    const sent = await sendMessage({ fetch: host.fetch, api }, to, message, signal)
    lastSentAtMs = host.clock.nowMs()
    // Where it is answered.
    const thread = to.thread ?? (sent.isMessage ? sent.id : undefined)
    if (thread !== undefined) cursors.know({ channel: to.to, thread }, thread)
    return { id: sent.id }
  }
  return {
    name: 'slack',
    allow: config.allowed_users,
    listen,
    send,
    update: (to, sent, message, signal) => updateMessage(api, to, sent, message, signal),
    limits: { text: TEXT_MAX, unit: 'utf16', attachments: FILES },
    notifications: {
      target: 'workspace',
      account,
      key: 'channels_config.slack.notification_channel_id',
      ...(prompts !== undefined && { to: { to: prompts } }),
    },
    ...(config.stream_mode === 'partial' && { draftEveryMs: config.draft_update_interval_ms }),
    typing: createTyping(api),
    fetchMedia: (attachment, options) => fetchMedia({ host, config, api }, attachment, options),
    health: () => ({ ...health(), ...(lastSentAtMs !== undefined && { lastSentAtMs }) }),
  }
}
