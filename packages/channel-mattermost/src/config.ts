/** The section `[channels_config.mattermost]`. */
import { headerSecret, httpUrl, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { ID } from './ids.ts'

const DRAFT_MS_MIN = 300

const allowedUser = v.pipe(
  v.string(),
  v.regex(
    /^(?:\*|[a-z0-9]{26})$/,
    ({ input }) =>
      `${JSON.stringify(input)} can never match a sender; write a user id of 26 letters and digits, from the log or the System Console, or *`,
  ),
)

export const mattermostSection = {
  path: 'channels_config.mattermost',
  schema: v.object({
    enabled: v.optional(v.pipe(v.boolean(), v.description('False: the channel is not built')), true),
    url: v.pipe(httpUrl(), v.description('Address of the server, such as https://chat.example.com')),
    bot_token: v.pipe(headerSecret(), v.description('Access token of the bot account, from Integrations → Bot Accounts')),
    channel_id: v.optional(
      v.pipe(
        v.string(),
        v.regex(ID, 'Must be the id of a channel: 26 letters and digits, from *View Info* of the channel'),
        v.description('Only messages of this channel are accepted. Absent: every channel that the bot is a member of, and direct messages'),
      ),
    ),
    allowed_users: v.optional(
      v.pipe(v.array(allowedUser), v.description('User ids that may write; * allows every sender, an empty list none')),
      [],
    ),
    thread_replies: v.optional(v.pipe(v.boolean(), v.description('True: a reply in a channel goes into the thread of its message')), true),
    mention_only: v.optional(
      v.pipe(
        v.boolean(),
        v.description(
          'True: outside of direct messages, only messages that mention the bot, or are in a thread that it or a mention opened, are answered',
        ),
      ),
      false,
    ),
    ack_reactions: v.optional(v.pipe(v.boolean(), v.description('True: the bot reacts with eyes to a message when its turn begins')), true),
    stream_mode: v.optional(
      v.pipe(v.picklist(['off', 'partial']), v.description('partial: shows a reply while it is being written, by editing one message')),
      'off',
    ),
    draft_update_interval_ms: v.optional(v.pipe(whole(DRAFT_MS_MIN), v.description('Shortest time between two such edits')), 1000),
  }),
} as const

export type MattermostConfig = v.InferOutput<typeof mattermostSection.schema>

/** Returns the account of the channel: the server, since a token does not say whose it is. Makes no request. */
export function accountOf({ url }: MattermostConfig): string {
  const { host, pathname } = new URL(url)
  return `${host}${pathname.replace(/\/$/, '')}`
}
