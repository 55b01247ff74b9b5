/** The `mattermost` channel: events arrive over a WebSocket, replies go out over the REST API. See `README.md`. */
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { MattermostApi } from './api.ts'
import { type MattermostConfig, mattermostSection } from './config.ts'
import type { Connection } from './connection.ts'
import { createCursors } from './cursors.ts'
import { MARKUP } from './markup.ts'
import { FILES, fetchMedia } from './media.ts'
import { Sender, TEXT_MAX } from './send.ts'

export default defineFeature({
  id: 'channel-mattermost',
  section: mattermostSection,
  build: (host, config) => (config.enabled ? { channels: [createMattermost(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function createMattermost(host: Host, config: MattermostConfig): Channel {
  const api = new MattermostApi(host, config)
  const cursors = createCursors(host.keyValue)
  const sender = new Sender(api, host)
  /** A daemon without this channel does not load the code of connections. */
  let loading: Promise<Connection> | undefined
  const connection = () => {
    loading ??= import('./connection.ts').then(({ Connection }) => new Connection(host, config, api, cursors))
    return loading
  }
  return {
    name: 'mattermost',
    allow: config.allowed_users,
    ...(api.token === '' && { missingConfig: 'bot_token' }),
    markup: MARKUP,
    limits: { text: TEXT_MAX, unit: 'codepoint', attachments: FILES },
    ...(config.stream_mode === 'partial' && { draftEveryMs: config.draft_update_interval_ms }),
    listen: async (deliver, context) => (await connection()).listen(deliver, context),
    cursors,
    send: (to, message, signal) => sender.send(to, message, signal),
    update: (_to, sent, message, signal) => sender.update(sent, message, signal),
    ...(config.ack_reactions && { acknowledge: (message, signal) => sender.acknowledge(message, signal) }),
    typing: (to, signal) => sender.typing(to, signal),
    fetchMedia: (attachment, { bytesMax, signal }) => fetchMedia(api, attachment, bytesMax, signal),
  }
}
