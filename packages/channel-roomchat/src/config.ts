/** `[channels_config.roomchat]` (§2.3). */
import { headerSecret, secretText } from '@sluice/sdk'
import * as v from 'valibot'

const serverUrl = v.pipe(
  v.string(),
  v.url(),
  v.regex(/^https?:\/\/[^@?#\s]+$/i, 'Not an http or https URL without user name, query and fragment'),
)

export const roomchatSection = {
  path: 'channels_config.roomchat',
  schema: v.object({
    enabled: v.optional(v.boolean(), true),
    base_url: v.pipe(serverUrl, v.description('Address at which Sluice reaches the server; with a path if it lives under one')),
    backend_url: v.optional(
      v.pipe(
        serverUrl,
        v.description('Address the server signs with, where that is another one than base_url: overwrite.cli.url in its config.php'),
      ),
    ),
    app_token: v.pipe(headerSecret(), v.description('For the chat interface, which is used only without a webhook_secret')),
    bot_name: v.optional(
      v.pipe(v.string(), v.description('Display name of the bot: messages under this name are its own; empty: no name is')),
      '',
    ),
    webhook_secret: v.optional(
      v.pipe(
        secretText({ env: ['SVC_ROOMCHAT_WEBHOOK_SECRET'], envWins: true }),
        v.description('The secret the bot was installed with: proves what comes in and signs what goes out; absent: nothing is proved'),
      ),
    ),
    allowed_users: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.minLength(1))),
        v.description('User ids, and guests/… for guests; * lets everybody in, empty nobody'),
      ),
      [],
    ),
  }),
} as const

export type RoomchatConfig = v.InferOutput<typeof roomchatSection.schema>
