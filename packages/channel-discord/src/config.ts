/** `[channels_config.discord]`. */
import { headerSecret, whole } from '@sluice/sdk'
import * as v from 'valibot'

const DRAFT_MS_MIN = 200

const snowflake = v.pipe(v.string(), v.regex(/^\d{1,20}$/, 'Not an id: digits only, copied with the developer mode of the app'))

const allowedUser = v.pipe(
  v.string(),
  v.regex(
    /^(?:\*|\d{1,20})$/,
    ({ input }) =>
      `${JSON.stringify(input)} can never match a sender; write a user id of digits, copied with the developer mode of the app, or *`,
  ),
)

export const discordSection = {
  path: 'channels_config.discord',
  schema: v.object({
    enabled: v.optional(v.boolean(), true),
    bot_token: v.pipe(headerSecret(), v.description('Token of the bot, from the developer portal')),
    guild_id: v.optional(
      v.pipe(snowflake, v.description('The one server that is listened to; direct messages pass. Absent: all the bot is in')),
    ),
    allowed_users: v.optional(v.pipe(v.array(allowedUser), v.description('User ids; * allows every sender, an empty list none')), []),
    listen_to_bots: v.optional(v.pipe(v.boolean(), v.description('Messages of other bots and of webhooks are messages too')), false),
    mention_only: v.optional(
      v.pipe(v.boolean(), v.description('On servers, only what mentions the bot, answers it by a reply or stands in a thread it opened')),
      false,
    ),
    notification_channel_id: v.optional(v.pipe(snowflake, v.description('The conversation notifications and questions are posted to'))),
    stream_mode: v.optional(
      v.pipe(v.picklist(['off', 'partial']), v.description('partial: an answer is shown while it is made, by edits of one message')),
      'off',
    ),
    draft_update_interval_ms: v.optional(v.pipe(whole(DRAFT_MS_MIN), v.description('The shortest time between two such edits')), 1000),
    api_url: v.optional(
      v.pipe(v.string(), v.url(), v.regex(/^https?:\/\/[^@?#\s]+$/i, 'Not an http or https URL without user name, query and fragment')),
      'https://discord.com/api',
    ),
  }),
} as const

export type DiscordConfig = v.InferOutput<typeof discordSection.schema>
