/** `[channels_config.slack]` (§2.3). */
import { headerSecret, whole } from '@sluice/sdk'
import * as v from 'valibot'

const DRAFT_MS_MIN = 300

const allowedUser = v.pipe(
  v.string(),
  v.regex(
    /^(?:\*|[UWB][A-Z0-9]+)$/,
    ({ input }) =>
      `${JSON.stringify(input)} can never match a sender; write a member id such as U012AB3CD, from the profile of the person, or *`,
  ),
)

export const slackSection = {
  path: 'channels_config.slack',
  schema: v.object({
    enabled: v.optional(v.pipe(v.boolean(), v.description('False: the channel is left out')), true),
    bot_token: v.pipe(headerSecret(), v.description('Bot token of the app, xoxb-…')),
    app_token: v.pipe(headerSecret(), v.description('App-level token with connections:write, xapp-…: opens the connection')),
    channel_ids: v.optional(
      v.pipe(v.array(v.string()), v.description('Conversations that are heard; * or none: all the bot is a member of')),
      [],
    ),
    allowed_users: v.optional(
      v.pipe(v.array(allowedUser), v.description('User ids that may write; * allows every sender, an empty list none')),
      [],
    ),
    thread_replies: v.optional(v.pipe(v.boolean(), v.description('True: an answer goes into the thread of its message')), true),
    mention_only: v.optional(
      v.pipe(v.boolean(), v.description('True: outside of direct messages and threads of the bot, only what mentions it is heard')),
      false,
    ),
    notification_channel_id: v.optional(v.pipe(v.string(), v.minLength(1), v.description('Where notifications and approval prompts go'))),
    stream_mode: v.optional(v.pipe(v.picklist(['off', 'partial']), v.description('partial: an answer is shown while it is made')), 'off'),
    draft_update_interval_ms: v.optional(
      v.pipe(whole(DRAFT_MS_MIN), v.description('Least time between two updates of such an answer')),
      1200,
    ),
    api_url: v.optional(
      v.pipe(
        v.string(),
        v.url(),
        v.regex(/^https?:\/\/[^@?#]+$/i, 'must be an http or https URL without user name, query or fragment'),
        v.description('Where the Web API is'),
      ),
      'https://slack.com/api/',
    ),
  }),
} as const

export type SlackConfig = v.InferOutput<typeof slackSection.schema>
