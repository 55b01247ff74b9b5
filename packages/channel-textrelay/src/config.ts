/** The section `[channels_config.textrelay]`. */

import { refineNumbers } from '@sluice/kit/phone-numbers'
import { headerSecret, secretText } from '@sluice/sdk'
import * as v from 'valibot'
import { isOtherHandle } from './handle.ts'

const API_URL = 'https://api.linqapp.com/api/partner/v3'

const schema = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('False keeps the section and disables the channel')), true),
  api_token: v.pipe(headerSecret(), v.description('Token of the partner API')),
  from_phone: v.pipe(
    v.string(),
    v.regex(/^\+[1-9]\d{1,14}$/, 'must be a number such as +15550001111 (E.164)'),
    v.description('Our own number, such as +15550001111, which starts new chats'),
  ),
  signing_secret: v.optional(
    v.pipe(
      secretText({ env: ['SVC_TEXTRELAY_SIGNING_SECRET'], envWins: true }),
      v.description('The secret that signs webhooks; without it they are not verified'),
    ),
  ),
  allowed_senders: v.optional(
    v.pipe(
      v.array(v.string()),
      v.description('Telephone numbers with their country code, and mail addresses; * allows every sender, an empty list none'),
    ),
    [],
  ),
  api_url: v.optional(
    v.pipe(
      v.string(),
      v.url(),
      v.regex(/^https?:\/\/[^@?#]+$/i, 'must be an http or https URL without user name, query or fragment'),
      v.description('Base URL of the partner API'),
    ),
    API_URL,
  ),
})

export const textrelaySection = {
  path: 'channels_config.textrelay',
  schema,
  async refine(value: TextrelayConfig) {
    const allowed = await refineNumbers(value.allowed_senders, { key: 'allowed_senders', isId: isOtherHandle, ids: 'a mail address' })
    return { ...allowed, value: { ...value, allowed_senders: allowed.value } }
  },
} as const

export type TextrelayConfig = v.InferOutput<typeof schema>
