/** The section `[channels_config.line]`. */
import { headerSecret, httpUrl, secretText } from '@sluice/sdk'
import * as v from 'valibot'

export const lineSection = {
  path: 'channels_config.line',
  schema: v.object({
    enabled: v.optional(v.pipe(v.boolean(), v.description('False keeps the section and disables the channel')), true),
    channel_access_token: v.pipe(
      headerSecret({ env: ['LINE_CHANNEL_ACCESS_TOKEN'] }),
      v.description('Channel access token, from the tab *Messaging API* of the LINE Developers Console'),
    ),
    channel_secret: v.optional(
      v.pipe(
        secretText({ env: ['LINE_CHANNEL_SECRET'] }),
        v.description('Channel secret, from *Basic settings*, which signs webhooks; without it they are not verified'),
      ),
    ),
    allowed_users: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.minLength(1))),
        v.description('User ids that may write, U and 32 hexadecimal digits each; * allows every sender, an empty list none'),
      ),
      [],
    ),
    dm_policy: v.optional(
      v.pipe(
        v.picklist(['allowlist', 'open']),
        v.description('allowlist: allowed_users may write directly. open: everybody may; allowed_users still decides in groups'),
      ),
      'allowlist',
    ),
    group_policy: v.optional(
      v.pipe(
        v.picklist(['mention', 'open', 'disabled']),
        v.description('mention: messages of allowed_users that mention the bot are answered. open: all of their messages. disabled: none'),
      ),
      'mention',
    ),
    api_url: v.optional(v.pipe(httpUrl(), v.description('Base URL of the Messaging API; for tests and proxies')), 'https://api.line.me'),
  }),
} as const

export type LineConfig = v.InferOutput<typeof lineSection.schema>
