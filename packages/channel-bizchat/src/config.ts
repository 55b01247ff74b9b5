/** The section `[channels_config.bizchat]`. */
import { refineAllowedNumbers } from '@sluice/kit/phone-numbers'
import { headerSecret, secretText } from '@sluice/sdk'
import * as v from 'valibot'

const schema = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('False keeps the section and disables the channel')), true),
  api_token: v.pipe(headerSecret(), v.description('Token of the host API')),
  api_url: v.pipe(
    v.string(),
    v.url(),
    v.regex(/^https?:\/\/[^@?#]+$/i, 'must be an http or https URL without user name, query or fragment'),
    v.description('URL of the host API; attachments are fetched only from this host, on any port'),
  ),
  tenant_id: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[^\s:]+$/, 'must be one word without a colon'),
      v.description('Channel of the account that sends replies, added before each recipient'),
    ),
  ),
  allowed_numbers: v.optional(
    v.pipe(
      v.array(v.string()),
      v.description(
        'Telephone numbers with their country code, or ids of users who hide their number; * allows every sender, an empty list none',
      ),
    ),
    [],
  ),
  webhook_secret: v.optional(
    v.pipe(
      secretText(),
      v.description(
        'The secret each webhook must bring, as ?token= or as a bearer token; without it webhooks are not verified, because the platform signs none',
      ),
    ),
  ),
})

export const bizchatSection = {
  path: 'channels_config.bizchat',
  schema,
  refine: (value: BizchatConfig) => refineAllowedNumbers(value),
} as const

export type BizchatConfig = v.InferOutput<typeof schema>
