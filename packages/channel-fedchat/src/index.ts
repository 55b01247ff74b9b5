/** The `fedchat` channel: rooms of Matrix, with end-to-end encryption. See `README.md`. */
import { type Channel, defineFeature } from '@sluice/sdk'
import { checkFedchat, fedchatCommands } from './commands.ts'
import { LIMITS } from './compose.ts'
import { type FedchatConfig, fedchatSection, folded } from './config.ts'
import type { Connection } from './connection.ts'
import { MARKUP } from './markup.ts'

export default defineFeature({
  id: 'channel-fedchat',
  section: fedchatSection,
  build(host, config) {
    /** A daemon without this channel does not load the code of connections. */
    let loading: Promise<Connection> | undefined
    const connection = () => {
      loading ??= import('./connection.ts').then(({ Connection }) => new Connection(host, config))
      return loading
    }
    const commands = fedchatCommands(host, connection)
    if (!config.enabled) return { disabledReason: '`enabled` is false', commands }
    return {
      channels: [createFedchat(config, connection)],
      commands,
      check: (signal) => checkFedchat(host, config, signal),
    }
  },
})

function createFedchat(config: FedchatConfig, connection: () => Promise<Connection>): Channel {
  const { access_token: token, user_id: userId, password } = config
  const hasLogin = token !== undefined || (userId !== undefined && password !== undefined)
  return {
    name: 'fedchat',
    allow: config.allowed_users,
    normalise: folded,
    listen: async (deliver, context) => (await connection()).listen(deliver, context),
    send: async (to, message, signal) => (await connection()).send(to, message, signal),
    update: async (to, sent, message, signal) => (await connection()).update(to, sent, message, signal),
    typing: async (to, signal) => (await connection()).typing(to, signal),
    fetchMedia: async (attachment, options) => (await connection()).fetchMedia(attachment, options),
    markup: MARKUP,
    changesLackThread: true,
    limits: {
      text: LIMITS.textBytes,
      unit: 'byte',
      dedupesClientIds: true,
      attachments: { count: LIMITS.files, bytesMax: LIMITS.fileBytes },
    },
    ...(config.stream_mode === 'partial' && { draftEveryMs: config.draft_update_interval_ms }),
    ...(!hasLogin && { missingConfig: 'access_token, or user_id and password' }),
  }
}
