/** `[channels_config.telegram]` (§2.3). */
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
    enabled: v.optional(v.pipe(v.boolean(), v.description('False: the channel is left out')), true),
    bot_token: v.pipe(headerSecret(), v.description('Of the bot, as its maker was given it: <number>:<letters>')),
    allowed_users: v.optional(
      v.pipe(
        v.array(allowedUser),
        v.description('Numeric ids, which stay, or user names, which stand for whoever used them first; * allows all, empty nobody'),
      ),
      [],
    ),
    notification_chat_id: v.optional(
      v.pipe(
        v.union([v.pipe(v.string(), v.regex(/^(?:-?\d+|@\w+)$/, 'Not a chat: -100123 or @name')), v.pipe(v.number(), v.integer())]),
        v.transform(String),
        v.description('The chat that notifications and questions go to'),
      ),
    ),
    stream_mode: v.optional(
      v.pipe(v.picklist(['off', 'partial']), v.description('partial: a reply is shown while it is made, by editing one message')),
      'off',
    ),
    draft_update_interval_ms: v.optional(v.pipe(whole(200, 60_000), v.description('Not more often is such a message edited')), 1000),
    mention_only: v.optional(
      v.pipe(v.boolean(), v.description('In groups, only what mentions the bot or answers it is a message to it')),
      false,
    ),
    api_url: v.optional(
      v.pipe(
        v.string(),
        v.url(),
        v.regex(/^https?:\/\/[^@?#\s]+$/i, 'Not an http or https URL without user name, query and fragment'),
        v.description('Where the Bot API is'),
      ),
      'https://api.telegram.org',
    ),
  }),
} as const

export type TelegramConfig = v.InferOutput<typeof telegramSection.schema>
