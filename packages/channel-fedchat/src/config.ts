/** The section `[channels_config.fedchat]`. */
import { headerSecret, httpUrl, secretText, whole } from '@sluice/sdk'
import * as v from 'valibot'

const DRAFT_MS_MIN = 300
/** See https://spec.matrix.org/latest/appendices/#user-identifiers. */
const USER_ID = /^@[^\s:]{1,200}:[^\s/?#]{1,230}$/
const ROOM = /^[!#][^\s/?]{1,254}$/

const user = v.pipe(v.string(), v.regex(USER_ID, 'is not a user id such as @ada:example.org'))
const room = v.pipe(v.string(), v.regex(ROOM, 'is neither a room id such as !abc:example.org nor an alias such as #ops:example.org'))

const schema = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('False: the channel is not built')), true),
  homeserver: v.pipe(httpUrl(), v.description('Base URL of the homeserver')),
  access_token: v.optional(v.pipe(headerSecret(), v.description('Access token of the account of the bot'))),
  user_id: v.optional(v.pipe(user, v.description('User id of the bot; the homeserver is asked for it unless given'))),
  device_id: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[\w.~+=-]{1,255}$/, 'is not a device id'),
      v.description('Device id of the access token, for homeservers that do not name it; the encryption keys belong to it'),
    ),
  ),
  password: v.optional(
    v.pipe(secretText(), v.description('Password of the account: Sluice logs in with it if there is no valid access token; needs user_id')),
  ),
  recovery_key: v.optional(
    v.pipe(secretText(), v.description('Recovery key of the account: the bot verifies its own device with it, by cross-signing')),
  ),
  room_id: v.pipe(room, v.description('Room of the bot: its id or an alias')),
  allowed_rooms: v.optional(
    v.pipe(
      v.array(v.union([v.literal('*'), room])),
      v.description('Further rooms whose messages and invitations are accepted; * accepts every room that an allowed user invites to'),
    ),
    [],
  ),
  allowed_users: v.optional(
    v.pipe(v.array(v.union([v.literal('*'), user])), v.description('User ids that may write; * allows every sender, an empty list none')),
    [],
  ),
  mention_only: v.optional(
    v.pipe(v.boolean(), v.description('True: in rooms with more than two members, only messages that mention the bot are answered')),
    false,
  ),
  stream_mode: v.optional(
    v.pipe(
      v.picklist(['off', 'partial', 'multi_message']),
      v.description('partial: edits a reply while it is being written; multi_message: sends each paragraph of a reply as a message'),
    ),
    'off',
  ),
  draft_update_interval_ms: v.optional(
    v.pipe(
      whole(DRAFT_MS_MIN),
      v.description(
        'Shortest time between two edits of such a reply; each edit is encrypted again, so that the default is higher than on other channels',
      ),
    ),
    2500,
  ),
  multi_message_delay_ms: v.optional(v.pipe(whole(0), v.description('Time between two such messages')), 800),
})

export const fedchatSection = { path: 'channels_config.fedchat', schema } as const

export type FedchatConfig = v.InferOutput<typeof schema>

/** User ids are compared in lower case, because people write them in any. */
export const folded = (userId: string): string => userId.toLowerCase()

/** Returns the name of the account under which messages are stored: the user id, or the server when only the token names the user. */
export const accountOf = ({ user_id: userId, homeserver }: FedchatConfig): string =>
  userId === undefined ? new URL(homeserver).host : folded(userId)

/** Tells whether the configuration lets a user write. The daemon filters messages; this decides about invitations and receipts. */
export const isAllowed = ({ allowed_users: allowed }: FedchatConfig, userId: string): boolean =>
  allowed.some((entry) => entry === '*' || folded(entry) === folded(userId))
