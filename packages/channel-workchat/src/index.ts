/**
 * The channels `workchat` and `workchat_cn`: bots of Lark and Feishu. Events arrive over a long connection or as signed webhooks,
 * replies go out as cards. See `README.md`.
 */
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { acknowledge } from './acknowledge.ts'
import { WorkchatApi } from './api.ts'
import { rememberBot } from './bot.ts'
import { baseUrlOf, sectionProblems, WORKCHAT, WORKCHAT_CN, type WorkchatConfig, workchatCnSection, workchatSection } from './config.ts'
import type { Connection } from './connection.ts'
import { createCursors } from './cursors.ts'
import { Identities } from './identities.ts'
import { MARKUP } from './markup.ts'
import { FILE_BYTES_MAX, fetchMedia } from './media.ts'
import { createCompleting } from './quotes.ts'
import { sendMessage, updateMessage } from './send.ts'
import { createWebhook } from './webhook.ts'

/** A card may have 30 KB; the rest is for its frame and for escapes. */
const TEXT_BYTES_MAX = 28_000
const FILES_MAX = 10
/** The platform drops a repeated `uuid` for an hour; the rest is for clocks that differ. */
const UUID_MS = 3_000_000

export default defineFeature({
  id: 'channel-workchat',
  section: workchatSection,
  moreSections: [workchatCnSection],
  checkSections: sectionProblems,
  build: (host, config, path = WORKCHAT) =>
    config.enabled ? { channels: [createWorkchat(host, config, path)] } : { disabledReason: '`enabled` is false' },
})

function createWorkchat(host: Host, config: WorkchatConfig, path: string): Channel {
  const name = path === WORKCHAT_CN ? 'workchat_cn' : 'workchat'
  const api = new WorkchatApi(host, config, baseUrlOf(config, path))
  const identities = new Identities({ keyValue: host.keyValue, key: `identities:${name}`, allow: config.allowed_users })
  return {
    name,
    allow: config.allowed_users,
    matches: (entry, sender) => identities.matches(entry, sender),
    ...(config.receive_mode === 'webhook'
      ? receiving({ host, api, config, name, identities })
      : listening({ host, api, config, path, identities })),
    send: (to, message, signal) => sendMessage(api, to, message, signal),
    update: (to, sent, message, signal) => updateMessage(api, to, sent, message, signal),
    markup: MARKUP,
    changesLackThread: true,
    limits: { text: TEXT_BYTES_MAX, unit: 'byte', dedupesForMs: UUID_MS, attachments: { count: FILES_MAX, bytesMax: FILE_BYTES_MAX } },
    ...(config.stream_mode === 'partial' && { draftEveryMs: config.draft_update_interval_ms }),
    ...(config.ack_reactions && { acknowledge: (message, signal) => acknowledge(api, message, signal) }),
    fetchMedia: (attachment, limits) => fetchMedia(api, config.app_id, attachment, limits),
  }
}

interface Parts {
  readonly api: WorkchatApi
  readonly config: WorkchatConfig
  readonly identities: Identities
}

type Receiving = Parts & { readonly host: Host; readonly name: 'workchat' | 'workchat_cn' }

function receiving({ host, api, config, name, identities }: Receiving): Pick<Channel, 'webhook'> {
  const { app_id: account, encrypt_key, verification_token, mention_only: mentionOnly, thread_replies: threadReplies } = config
  return {
    webhook: createWebhook({
      path: `/${name}`,
      appId: account,
      ...(encrypt_key && { encryptKey: encrypt_key.reveal().trim() }),
      ...(verification_token && { verificationToken: verification_token.reveal().trim() }),
      mentionOnly,
      overhears: true,
      threadReplies,
      botOpenId: rememberBot(api),
      completing: createCompleting({
        host,
        api,
        bot: { account, openId: undefined, mentionOnly, threadReplies },
        isAllowed: (sender) => identities.allows(sender),
      }),
      onIdentity: (identity) => identities.learn(identity),
    }),
  }
}

function listening(parts: Parts & { readonly host: Host; readonly path: string }): Pick<Channel, 'listen' | 'cursors'> {
  const { host, path } = parts
  const cursors = createCursors(host.keyValue, path.slice(path.lastIndexOf('.') + 1))
  /** A daemon without this channel does not load the code of connections. */
  let loading: Promise<Connection> | undefined
  const connection = () => {
    loading ??= import('./connection.ts').then(({ Connection }) => new Connection({ ...parts, cursors }))
    return loading
  }
  return { cursors, listen: async (deliver, context) => (await connection()).listen(deliver, context) }
}
