/** The section `[channels_config.chatapp]`, with the keys of cloud mode. */
import { refineAllowedNumbers } from '@sluice/kit/phone-numbers'
import { headerSecret, secretText } from '@sluice/sdk'
import * as v from 'valibot'

const schema = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('False keeps the section and disables the channel')), true),
  access_token: v.pipe(headerSecret(), v.description('The token that sends messages and fetches media')),
  phone_number_id: v.optional(v.pipe(v.string(), v.description("The platform's id of our number; its presence activates cloud mode"))),
  verify_token: v.pipe(secretText(), v.description('The token that the platform must send in its GET check')),
  app_secret: v.optional(
    v.pipe(
      secretText({ env: ['SVC_CHATAPP_APP_SECRET'], envWins: true }),
      v.description('The secret that verifies every request; without it requests are not verified'),
    ),
  ),
  allowed_numbers: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.minLength(1))),
      v.description(
        'Telephone numbers with their country code, or ids of users who hide their number; * allows every sender, an empty list none',
      ),
    ),
    [],
  ),
  mode: v.optional(
    v.pipe(
      v.picklist(['business', 'personal']),
      v.description('The kind of account in web mode; cloud mode always uses a business account and only checks the value'),
    ),
    'business',
  ),
  api_url: v.optional(
    v.pipe(v.string(), v.url(), v.regex(/^https?:/i, 'Not an http or https URL'), v.description('Base URL of the cloud API')),
    'https://graph.facebook.com',
  ),
  api_version: v.optional(
    v.pipe(v.string(), v.regex(/^v\d+\.\d+$/, 'Not a version such as v23.0'), v.description('Version of the cloud API')),
    'v23.0',
  ),
})

export const chatappSection = {
  path: 'channels_config.chatapp',
  schema,
  refine: (value: ChatappConfig) => refineAllowedNumbers(value),
} as const

export type ChatappConfig = v.InferOutput<typeof schema>
