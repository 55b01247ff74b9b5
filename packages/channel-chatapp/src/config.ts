/** `[channels_config.chatapp]`, the keys of cloud mode (§2.3). */

import { refineNumbers } from '@sluice/kit/phone-numbers'
import { headerSecret, secretText } from '@sluice/sdk'
import * as v from 'valibot'
import { isUserId } from './sender.ts'

const schema = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('False keeps the section and builds no channel')), true),
  access_token: v.pipe(headerSecret(), v.description('Sends messages and fetches media')),
  phone_number_id: v.optional(v.pipe(v.string(), v.description('The id of our number at the provider; its presence activates cloud mode'))),
  verify_token: v.pipe(secretText(), v.description('What the provider has to name in its GET check')),
  app_secret: v.optional(
    v.pipe(
      secretText({ env: ['SVC_CHATAPP_APP_SECRET'], envWins: true }),
      v.description('Proves every request; absent: nothing is proved'),
    ),
  ),
  allowed_numbers: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.minLength(1))),
      v.description('Telephone numbers with their country code, or ids of users who show none; * allows every sender, an empty list none'),
    ),
    [],
  ),
  mode: v.optional(
    v.pipe(
      v.picklist(['business', 'personal']),
      v.description('The kind of account in web mode; cloud mode is always a business account and only checks the word'),
    ),
    'business',
  ),
  api_url: v.optional(
    v.pipe(v.string(), v.url(), v.regex(/^https?:/i, 'Not an http or https URL'), v.description('Where the cloud API is')),
    'https://graph.facebook.com',
  ),
  api_version: v.optional(
    v.pipe(v.string(), v.regex(/^v\d+\.\d+$/, 'Not a version such as v23.0'), v.description('Of the cloud API')),
    'v23.0',
  ),
})

export const chatappSection = {
  path: 'channels_config.chatapp',
  schema,
  async refine(value: ChatappConfig) {
    const allowed = await refineNumbers(value.allowed_numbers, {
      key: 'allowed_numbers',
      isId: isUserId,
      ids: 'an id of a user who shows no number, such as US.90000000000001',
    })
    return { ...allowed, value: { ...value, allowed_numbers: [...allowed.value] } }
  },
} as const

export type ChatappConfig = v.InferOutput<typeof schema>
