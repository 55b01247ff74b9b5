/** The section `[channels_config.telegram]`. */
import { headerSecret, whole } from '@sluice/sdk'
import * as v from 'valibot'

const allowedUser = v.pipe(
  v.string(),
  v.regex(
    /^\s*(?:\*|\d{1,20}|@?[A-Za-z]\w{0,31})\s*$/,
    ({ input }) => `${JSON.stringify(input)} can never match a sender; write the numeric id of a person, a user name such as @ada, or *`,
  ),
)

export const telegramSection = {
  path: 'channels_config.telegram',
  schema: v.object({
    enabled: v.optional(v.pipe(v.boolean(), v.description('False: the channel is not built')), true),
    bot_token: v.pipe(headerSecret(), v.description('Token of the bot, from @BotFather: <number>:<letters>')),
    allowed_users: v.optional(
      v.pipe(
        v.array(allowedUser),
        v.description(
          'Numeric ids or user names; a user name means the first account that uses it. * allows every sender, an empty list none',
        ),
      ),
      [],
    ),
    notification_chat_id: v.optional(
      v.pipe(
        v.union([
          v.pipe(v.string(), v.regex(/^(?:-?\d+|@\w+)$/, 'Must be a chat such as -100123 or @name')),
          v.pipe(v.number(), v.integer()),
        ]),
        v.transform(String),
        v.description('Chat that receives notifications and approval prompts'),
      ),
    ),
    stream_mode: v.optional(
      v.pipe(
        v.picklist(['off', 'partial']),
        v.description('partial: shows a reply while it is being written, by a live draft or by editing one message'),
      ),
      'off',
    ),
    draft_update_interval_ms: v.optional(
      v.pipe(whole(200, 60_000), v.description('Shortest time between two changes of such a reply')),
      1000,
    ),
    mention_only: v.optional(
      v.pipe(v.boolean(), v.description('In groups, answer only messages that mention the bot or reply to it')),
      false,
    ),
    api_url: v.optional(
      v.pipe(
        v.string(),
        v.url(),
        v.regex(/^https?:\/\/[^@?#\s]+$/i, 'Must be an http or https URL without user name, query and fragment'),
        v.description('Base URL of the Bot API'),
      ),
      'https://api.telegram.org',
    ),
  }),
} as const

export type TelegramConfig = v.InferOutput<typeof telegramSection.schema>
