/** The sections `[channels_config.workchat]` and `[channels_config.workchat_cn]`. */
import { httpUrl, type Section, type SectionProblem, secretText, whole } from '@sluice/sdk'
import * as v from 'valibot'

export const WORKCHAT = 'channels_config.workchat'
export const WORKCHAT_CN = 'channels_config.workchat_cn'

/** The platform accepts five edits of one message in a second. */
const DRAFT_MS_MIN = 250

const keys = {
  enabled: v.optional(v.pipe(v.boolean(), v.description('False: the channel is not built')), true),
  app_id: v.pipe(v.string(), v.trim(), v.minLength(1), v.description('App ID from the credentials page of the app, cli_…')),
  app_secret: v.pipe(secretText(), v.description('App Secret from the same page')),
  allowed_users: v.optional(
    v.pipe(
      v.array(v.string()),
      v.description('Open ids (ou_…), union ids (on_…) or user ids that may write; * allows every sender, an empty list none'),
    ),
    [],
  ),
  receive_mode: v.optional(
    v.pipe(
      v.picklist(['websocket', 'webhook']),
      v.description('websocket: Sluice opens a long connection; webhook: the platform posts to a public HTTPS address'),
    ),
    'websocket',
  ),
  encrypt_key: v.optional(
    v.pipe(secretText(), v.description('Encrypt Key of the app: encrypts and signs the requests of the webhook mode')),
  ),
  verification_token: v.optional(
    v.pipe(secretText(), v.description('Verification Token of the app: proves requests of the webhook mode that are not encrypted')),
  ),
  mention_only: v.optional(v.pipe(v.boolean(), v.description('True: messages in groups are answered only if they mention the bot')), false),
  thread_replies: v.optional(v.pipe(v.boolean(), v.description('True: a reply to a message in a group opens a thread on it')), false),
  ack_reactions: v.optional(
    v.pipe(v.boolean(), v.description('True: the bot reacts to a message when its turn begins, in the language of the message')),
    true,
  ),
  stream_mode: v.optional(v.pipe(v.picklist(['off', 'partial']), v.description('partial: shows a reply while it is being written')), 'off'),
  draft_update_interval_ms: v.optional(
    v.pipe(whole(DRAFT_MS_MIN), v.description('Shortest time between two updates of such a reply')),
    1000,
  ),
  api_url: v.optional(v.pipe(httpUrl(), v.description('Base URL of the platform; by default the one of the region'))),
}

const legacy = {
  use_cn_region: v.optional(
    v.pipe(v.boolean(), v.description('Former spelling of a section workchat_cn: true connects to Feishu, the platform in China')),
  ),
}

const schema = v.object({ ...keys, ...legacy })

export const workchatSection = { path: WORKCHAT, schema } as const
export const workchatCnSection: Section = { path: WORKCHAT_CN, schema: v.object(keys) }

export type WorkchatConfig = v.InferOutput<typeof schema>

const LARK = 'https://open.larksuite.com'
const FEISHU = 'https://open.feishu.cn'

/** Returns the base URL of the platform without a slash at its end. */
export function baseUrlOf({ api_url: url, use_cn_region: isLegacyCn }: WorkchatConfig, path: string): string {
  const base = url ?? (path === WORKCHAT_CN || isLegacyCn === true ? FEISHU : LARK)
  return base.endsWith('/') ? base.slice(0, -1) : base
}

/** Both sections may be configured, for two apps. Two connections of one app would each get a part of its events. */
export function sectionProblems(values: ReadonlyMap<string, object>): readonly SectionProblem[] {
  const ids = [WORKCHAT, WORKCHAT_CN].map((path) => (values.get(path) as WorkchatConfig | undefined)?.app_id)
  if (ids[0] === undefined || ids[0] !== ids[1]) return []
  return [{ section: WORKCHAT_CN, key: 'app_id', message: `is also the app of [${WORKCHAT}]; keep one of the two sections` }]
}
