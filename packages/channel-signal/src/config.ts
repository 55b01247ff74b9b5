/** The section `[channels_config.signal]`. */
import { refineNumbers } from '@sluice/kit/phone-numbers'
import * as v from 'valibot'

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const flag = (description: string) => v.optional(v.pipe(v.boolean(), v.description(description)), false)

const schema = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('False keeps the section and disables the channel')), true),
  http_url: v.optional(
    v.pipe(
      v.string(),
      v.url(),
      v.regex(/^https?:\/\/[^@?#]+$/i, 'must be an http or https URL without user name, query or fragment'),
      v.description('The address of `signal-cli daemon --http`'),
    ),
    'http://127.0.0.1:8686',
  ),
  account: v.pipe(
    v.string(),
    v.regex(/^\+[1-9]\d{1,14}$/, 'must be a number such as +15550001111 (E.164)'),
    v.description('The number of the bot, which is registered or linked in signal-cli'),
  ),
  group_id: v.optional(
    v.pipe(
      v.string(),
      v.minLength(1),
      v.description('`dm`: only direct messages; the id of a group: only that group; absent: both, and all groups'),
    ),
  ),
  allowed_from: v.optional(
    v.pipe(
      v.array(v.string()),
      v.description('Telephone numbers with their country code, and ids of accounts (UUID); * allows every sender, an empty list none'),
    ),
    [],
  ),
  ignore_attachments: flag('True: attachments are dropped'),
  ignore_stories: flag('True: stories are dropped'),
})

export const signalSection = {
  path: 'channels_config.signal',
  schema,
  async refine(value: SignalConfig) {
    const isId = (entry: string): boolean => UUID.test(entry)
    const allowed = await refineNumbers(value.allowed_from, { key: 'allowed_from', isId, ids: 'the id of an account' })
    return { ...allowed, value: { ...value, allowed_from: allowed.value } }
  },
} as const

export type SignalConfig = v.InferOutput<typeof schema>
