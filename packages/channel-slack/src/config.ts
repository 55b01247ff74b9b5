/** The section `[channels_config.slack]`. */
import { headerSecret, type Secret, whole } from '@sluice/sdk'
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
    enabled: v.optional(v.pipe(v.boolean(), v.description('False: the channel is not built')), true),
    bot_token: v.pipe(headerSecret(), v.description('Bot token of the app, xoxb-…')),
    app_token: v.pipe(headerSecret(), v.description('App-level token with connections:write, xapp-…: opens the connection')),
    channel_ids: v.optional(
      v.pipe(
        v.array(v.string()),
        v.description('Conversations whose messages are accepted; * or an empty list: every conversation that the bot is a member of'),
      ),
      [],
    ),
    allowed_users: v.optional(
      v.pipe(v.array(allowedUser), v.description('User ids that may write; * allows every sender, an empty list none')),
      [],
    ),
    thread_replies: v.optional(v.pipe(v.boolean(), v.description('True: a reply goes into the thread of its message')), true),
    mention_only: v.optional(
      v.pipe(
        v.boolean(),
        v.description('True: outside of direct messages and threads of the bot, only messages that mention the bot are answered'),
      ),
      false,
    ),
    notification_channel_id: v.optional(
      v.pipe(v.string(), v.minLength(1), v.description('Conversation that receives notifications and approval prompts')),
    ),
    stream_mode: v.optional(
      v.pipe(v.picklist(['off', 'partial']), v.description('partial: shows a reply while it is being written')),
      'off',
    ),
    draft_update_interval_ms: v.optional(
      v.pipe(whole(DRAFT_MS_MIN), v.description('Shortest time between two updates of such a reply')),
      1200,
    ),
    api_url: v.optional(
      v.pipe(
        v.string(),
        v.url(),
        v.regex(/^https?:\/\/[^@?#]+$/i, 'must be an http or https URL without user name, query or fragment'),
        v.description('Base URL of the Web API'),
      ),
      'https://slack.com/api/',
    ),
  }),
} as const

export type SlackConfig = v.InferOutput<typeof slackSection.schema>

/**
 * Returns the id of the app, which its app-level token `xapp-1-A0123-…` contains, or `app` for a token of another form. Makes
 * no request.
 */
export const accountOf = (appToken: Secret): string => /^xapp-\d+-([A-Z0-9]+)-/.exec(appToken.reveal().trim())?.[1] ?? 'app'
