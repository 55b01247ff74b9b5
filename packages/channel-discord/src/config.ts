/** The section `[channels_config.discord]`. */
import { headerSecret, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { isSnowflake } from './snowflake.ts'

const DRAFT_MS_MIN = 200

const snowflake = v.pipe(
  v.string(),
  v.regex(/^\d{1,20}$/, 'Must be an id of digits only; turn on the developer mode of the Discord app and copy the id'),
)

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
      v.pipe(
        snowflake,
        v.description('Only messages of this server and direct messages are accepted. Absent: every server that the bot is on'),
      ),
    ),
    allowed_users: v.optional(v.pipe(v.array(allowedUser), v.description('User ids; * allows every sender, an empty list none')), []),
    listen_to_bots: v.optional(v.pipe(v.boolean(), v.description('Accept messages of other bots and of webhooks')), false),
    mention_only: v.optional(
      v.pipe(
        v.boolean(),
        v.description('On servers, answer only messages that mention the bot, reply to it, or are in a thread that it opened'),
      ),
      false,
    ),
    notification_channel_id: v.optional(
      v.pipe(snowflake, v.description('Id of the conversation that receives notifications and approval prompts')),
    ),
    stream_mode: v.optional(
      v.pipe(v.picklist(['off', 'partial']), v.description('partial: shows a reply while it is being written, by editing one message')),
      'off',
    ),
    draft_update_interval_ms: v.optional(v.pipe(whole(DRAFT_MS_MIN), v.description('Shortest time between two such edits')), 1000),
    api_url: v.optional(
      v.pipe(v.string(), v.url(), v.regex(/^https?:\/\/[^@?#\s]+$/i, 'Must be an http or https URL without user name, query and fragment')),
      'https://discord.com/api',
    ),
  }),
} as const

export type DiscordConfig = v.InferOutput<typeof discordSection.schema>

/**
 * Returns the bot's user id, which the first part of its token encodes, or `bot` for a token of another form. Makes no
 * request.
 */
export function accountOf(token: string): string {
  const id = Buffer.from(token.split('.')[0] ?? '', 'base64url').toString('latin1')
  return isSnowflake(id) ? id : 'bot'
}
