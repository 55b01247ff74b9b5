/** The section `[channels_config.chatapp]` with the keys of web mode. `[channels_config.chatapp_web]` has the same keys, for a daemon with both modes. */
import { chatappKeys } from '@sluice/chatapp-common'
import { isHiddenNumberId, refineNumbers } from '@sluice/kit/phone-numbers'
import { type Refined, whole } from '@sluice/sdk'
import * as v from 'valibot'

const PATTERN_CHARS_MAX = 100
const EDITS_MS_MIN = 1000

const names = (description: string) =>
  v.optional(v.pipe(v.array(v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(PATTERN_CHARS_MAX))), v.description(description)), [])

const policy = (of: string) =>
  v.optional(
    v.pipe(v.picklist(['allowlist', 'ignore']), v.description(`\`allowlist\` answers ${of} of allowed senders, \`ignore\` answers none`)),
    'allowlist',
  )

const schema = v.object({
  ...chatappKeys,
  session_path: v.optional(
    v.pipe(
      v.string(),
      v.minLength(1),
      v.description(
        'Activates web mode, and names the linked device: another path is another device. The keys of the device are in the encrypted store, not in this file',
      ),
    ),
  ),
  pair_phone: v.optional(
    v.pipe(
      v.string(),
      v.check((text) => /^\+?\d{6,15}$/.test(text.replace(/[\s().-]/g, '')), 'must be a telephone number with its country code'),
      v.description('The number of the account, for linking by a code that is typed into the phone; without it a QR code is shown'),
    ),
  ),
  allowed_groups: names('Groups to take part in, such as 120363000000000000@g.us; an empty list means all groups'),
  dm_policy: policy('direct messages'),
  group_policy: policy('messages in groups'),
  mention_only: v.optional(
    v.pipe(
      v.boolean(),
      v.description('True: to be answered, a message in a group must mention the bot, quote it, or contain one of `mention_names`'),
    ),
    false,
  ),
  mention_names: names('Names by which people address the bot in a group, compared as whole words without regard to case'),
  self_chat_mode: v.optional(
    v.pipe(v.boolean(), v.description('True: messages of the own account to itself are answered, if its number is in `allowed_numbers`')),
    false,
  ),
  read_receipts: v.optional(
    v.pipe(v.boolean(), v.description('Whether a message is marked as read when its turn begins; default: in `business` mode')),
  ),
  voice_replies: v.optional(
    v.pipe(v.boolean(), v.description('True: where `[speech]` is enabled, a voice message is answered by text and by a voice message')),
    true,
  ),
  stream_mode: v.optional(
    v.pipe(v.picklist(['off', 'partial']), v.description('`partial` edits a reply while it is being written')),
    'off',
  ),
  draft_update_interval_ms: v.optional(
    v.pipe(whole(EDITS_MS_MIN, 60_000), v.description('The shortest time between two such edits')),
    2000,
  ),
  web_url: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^wss?:\/\/[^@#\s]+$/i, 'must be a ws or wss URL'),
      v.description('Another address of the servers, for tests'),
    ),
  ),
  web_root_key: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[\da-f]{64}$/i, 'must be 64 hex digits'),
      v.description('The public key that signs the certificates of the servers at `web_url`; default: the one of WhatsApp'),
    ),
  ),
  web_version: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^\d+\.\d+\.\d+$/, 'must have three numbers'),
      v.description('The version of WhatsApp Web to report, if the servers refuse the one of the library'),
    ),
  ),
})

export const chatappWebSection = { path: 'channels_config.chatapp', schema, refine } as const
/** The same keys for a daemon that uses cloud mode, too. */
export const secondSection = { path: 'channels_config.chatapp_web', schema, refine } as const

export type ChatappWebConfig = v.InferOutput<typeof schema>

const LID_ENTRY = /^\d+@lid$/

/** Cloud mode takes precedence, and checks the list itself. */
async function refine(section: ChatappWebConfig): Promise<Refined<ChatappWebConfig>> {
  if (section.session_path === undefined || section.phone_number_id?.trim()) return { value: section, problems: [] }
  const { value, problems } = await refineNumbers(section.allowed_numbers, {
    key: 'allowed_numbers',
    isId: (entry) => LID_ENTRY.test(entry) || isHiddenNumberId(entry),
    ids: 'the id of a user who hides the number, such as 123456789012345@lid',
  })
  return { problems, value: { ...section, allowed_numbers: value } }
}
