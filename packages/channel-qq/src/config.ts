/** The section `[channels_config.qq]`. */
import { httpUrl, secretText } from '@sluice/sdk'
import * as v from 'valibot'

const flag = (description: string, value = false) => v.optional(v.pipe(v.boolean(), v.description(description)), value)

const schema = v.object({
  enabled: flag('False keeps the section and disables the channel', true),
  app_id: v.pipe(
    v.string(),
    v.regex(/^\d{1,20}$/, 'must be the number of the bot, such as 102000001'),
    v.description('The AppID of the bot'),
  ),
  app_secret: v.pipe(secretText(), v.description('The AppSecret of the bot, which also verifies requests to the webhook')),
  allowed_users: v.optional(
    v.pipe(
      v.array(v.string()),
      v.description(
        'The openids of people who may write; * allows every sender, an empty list none. A person has another openid in each group',
      ),
    ),
    [],
  ),
  mode: v.optional(
    v.pipe(
      v.picklist(['websocket', 'webhook']),
      v.description('`websocket`: Sluice connects to QQ; `webhook`: QQ posts to `/qq`, for which the platform must know its address'),
    ),
    'websocket',
  ),
  markdown: flag('True: replies are markdown, for which the bot needs a permission'),
  buttons: flag('True: approvals have buttons, for which the bot needs a permission'),
  sandbox: flag('True: uses the sandbox of the platform unless `api_url` is set'),
  api_url: v.optional(v.pipe(httpUrl(), v.description('Base URL of the API. Default: `https://api.bot.qq.com`, or that of the sandbox'))),
  token_url: v.optional(
    v.pipe(httpUrl(), v.description('The address that grants access tokens')),
    'https://bots.qq.com/app/getAppAccessToken',
  ),
})

export const qqSection = { path: 'channels_config.qq', schema } as const

export type QqConfig = v.InferOutput<typeof schema>

/** Returns the base URL of the API. */
export const apiUrlOf = ({ api_url, sandbox }: QqConfig): string =>
  api_url ?? (sandbox ? 'https://sandbox.api.bot.qq.com' : 'https://api.bot.qq.com')
