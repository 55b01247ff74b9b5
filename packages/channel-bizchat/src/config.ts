/** `[channels_config.bizchat]` (§2.3). */
import { headerSecret, secretText } from '@sluice/sdk'
import * as v from 'valibot'

export const bizchatSection = {
  path: 'channels_config.bizchat',
  schema: v.object({
    enabled: v.optional(v.pipe(v.boolean(), v.description('False: the channel is left out')), true),
    api_token: v.pipe(headerSecret(), v.description('Token of the host API')),
    api_url: v.pipe(
      v.string(),
      v.url(),
      v.regex(/^https?:\/\/[^@?#]+$/i, 'must be an http or https URL without user name, query or fragment'),
      v.description('Where the host API is; attachments are fetched from this host alone'),
    ),
    tenant_id: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[^\s:]+$/, 'must be one word without a colon'),
        v.description('Put before each recipient, so that a reply leaves by this channel of the account'),
      ),
    ),
    allowed_numbers: v.optional(v.pipe(v.array(v.string()), v.description('Numbers that may write; * allows all, empty nobody')), []),
    webhook_secret: v.optional(
      v.pipe(
        secretText(),
        v.description(
          'Demanded of each webhook, as ?token= or as a bearer; without it webhooks are not verified, for the provider signs none',
        ),
      ),
    ),
  }),
} as const

export type BizchatConfig = v.InferOutput<typeof bizchatSection.schema>
