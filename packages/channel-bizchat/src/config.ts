/** `[channels_config.bizchat]` (§2.3). */

import { refineNumbers } from '@sluice/kit/phone-numbers'
import { headerSecret, secretText } from '@sluice/sdk'
import * as v from 'valibot'
import { isUserId } from './sender.ts'

const schema = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('False: the channel is left out')), true),
  api_token: v.pipe(headerSecret(), v.description('Token of the host API')),
  api_url: v.pipe(
    v.string(),
    v.url(),
    v.regex(/^https?:\/\/[^@?#]+$/i, 'must be an http or https URL without user name, query or fragment'),
    v.description('Where the host API is; attachments are fetched from this host alone, at any port'),
  ),
  tenant_id: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[^\s:]+$/, 'must be one word without a colon'),
      v.description('Put before each recipient, so that a reply leaves by this channel of the account'),
    ),
  ),
  allowed_numbers: v.optional(
    v.pipe(
      v.array(v.string()),
      v.description('Telephone numbers with their country code, or ids of users who show none; * allows every sender, an empty list none'),
    ),
    [],
  ),
  webhook_secret: v.optional(
    v.pipe(
      secretText(),
      v.description(
        'Demanded of each webhook, as ?token= or as a bearer; without it webhooks are not verified, for the provider signs none',
      ),
    ),
  ),
})

export const bizchatSection = {
  path: 'channels_config.bizchat',
  schema,
  async refine(value: BizchatConfig) {
    const allowed = await refineNumbers(value.allowed_numbers, {
      key: 'allowed_numbers',
      isId: isUserId,
      ids: 'an id of a user who shows no number, such as US.90000000000001',
    })
    return { ...allowed, value: { ...value, allowed_numbers: [...allowed.value] } }
  },
} as const

export type BizchatConfig = v.InferOutput<typeof schema>
