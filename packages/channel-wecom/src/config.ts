/** The section `[channels_config.wecom]`: an AI bot, an app, a group robot, or several of them. */
import { httpUrl, secretText } from '@sluice/sdk'
import * as v from 'valibot'

const word = (description: string) => v.optional(v.pipe(v.string(), v.trim(), v.minLength(1), v.description(description)))
const secret = (description: string) => v.optional(v.pipe(secretText(), v.description(description)))

const schema = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('False keeps the section and disables the channel')), true),
  allowed_users: v.optional(
    v.pipe(v.array(v.string()), v.description('The user ids of people who may write; * allows every sender, an empty list none')),
    [],
  ),
  bot_id: word('The Bot ID of an AI bot with a long connection'),
  bot_secret: secret('The Secret of the AI bot for its long connection'),
  corp_id: word('The id of the organisation (CorpID), for an app'),
  agent_id: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.description('The AgentId of the app'))),
  app_secret: secret('The Secret of the app'),
  callback_token: secret('The Token of the message callback of the app'),
  callback_aes_key: v.optional(
    v.pipe(
      secretText(),
      v.check((key) => /^[A-Za-z0-9]{43}$/.test(key.reveal()), 'must have the 43 letters and digits of the EncodingAESKey'),
      v.description('The EncodingAESKey of the message callback of the app'),
    ),
  ),
  webhook_key: secret('The key in the webhook address of a group robot, which only sends'),
  api_url: v.optional(v.pipe(httpUrl(), v.description('Base URL of the API')), 'https://qyapi.weixin.qq.com'),
  ws_url: v.optional(
    v.pipe(v.string(), v.regex(/^wss?:\/\/[^@?#\s]+$/, 'must be a WebSocket address'), v.description('The address of the long connection')),
    'wss://openws.work.weixin.qq.com',
  ),
})

export const wecomSection = { path: 'channels_config.wecom', schema } as const

export type WecomConfig = v.InferOutput<typeof schema>

/** An app of the organisation, with its message callback. */
export interface AppConfig {
  readonly corpId: string
  readonly agentId: number
  readonly secret: () => string
  readonly token: () => string
  readonly aesKey: () => string
}

/** Returns the settings of the app; undefined unless all of them are set. */
export function appOf({ corp_id, agent_id, app_secret, callback_token, callback_aes_key }: WecomConfig): AppConfig | undefined {
  if (!corp_id || !agent_id || !app_secret || !callback_token || !callback_aes_key) return undefined
  return {
    corpId: corp_id,
    agentId: agent_id,
    secret: () => app_secret.reveal(),
    token: () => callback_token.reveal(),
    aesKey: () => callback_aes_key.reveal(),
  }
}

/** True while no key of any of the three ways is set. */
export const isEmpty = ({
  bot_id,
  bot_secret,
  corp_id,
  agent_id,
  app_secret,
  callback_token,
  callback_aes_key,
  webhook_key,
}: WecomConfig): boolean =>
  [bot_id, bot_secret, corp_id, agent_id, app_secret, callback_token, callback_aes_key, webhook_key].every((value) => value === undefined)

/** Returns what is missing for a channel that works; undefined if it does. */
export function missingIn(config: WecomConfig): string | undefined {
  const { bot_id, bot_secret, corp_id, agent_id, app_secret, callback_token, callback_aes_key } = config
  if (Boolean(bot_id) !== Boolean(bot_secret)) return bot_id ? 'bot_secret' : 'bot_id'
  const app = { corp_id, agent_id, app_secret, callback_token, callback_aes_key }
  const missing = Object.entries(app).filter(([, value]) => value === undefined)
  if (missing.length > 0 && missing.length < Object.keys(app).length) return missing.map(([key]) => key).join(' and ')
  return isEmpty(config) ? 'bot_id and bot_secret, or the keys of an app (corp_id and others), or webhook_key' : undefined
}
