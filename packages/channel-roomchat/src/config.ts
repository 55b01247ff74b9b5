/** The section `[channels_config.roomchat]`. */
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
    enabled: v.optional(v.pipe(v.boolean(), v.description('False keeps the section and disables the channel')), true),
    base_url: v.pipe(serverUrl, v.description('URL at which Sluice reaches the server, including its path if there is one')),
    backend_url: v.optional(
      v.pipe(serverUrl, v.description('URL by which the server names itself, if it is not base_url: overwrite.cli.url in its config.php')),
    ),
    app_token: v.pipe(headerSecret(), v.description('Token for the chat API, which is used only without a webhook_secret')),
    bot_name: v.optional(
      v.pipe(v.string(), v.description('Display name of the bot: its messages are ignored, and it is left out in front of a message')),
      '',
    ),
    webhook_secret: v.optional(
      v.pipe(
        secretText({ env: ['SVC_ROOMCHAT_WEBHOOK_SECRET'], envWins: true }),
        v.description('Secret of the installed bot, which verifies requests and signs replies; without it requests are not verified'),
      ),
    ),
    ack_reactions: v.optional(
      v.pipe(v.boolean(), v.description('True: a bot reacts with eyes to a message when its turn begins; needs a webhook_secret')),
      true,
    ),
    allowed_users: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.minLength(1))),
        v.description('User ids, and guests/… for guests; * allows every sender, an empty list none'),
      ),
      [],
    ),
  }),
} as const

export type RoomchatConfig = v.InferOutput<typeof roomchatSection.schema>
