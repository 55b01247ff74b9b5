/** `[channels_config.mailpush]` (§2.3). */
import { headerSecret, secretText } from '@sluice/sdk'
import * as v from 'valibot'
import { isAddress, isDomain } from './address.ts'

const url = v.pipe(v.string(), v.url(), v.regex(/^https?:/i, 'Not an http or https URL'))
const word = v.pipe(v.string(), v.minLength(1))
const described = (meaning: string) => v.pipe(word, v.description(meaning))

const allowedSender = v.pipe(
  v.string(),
  v.check(
    (entry) => entry === '*' || isAddress(entry.trim()) || isDomain(entry.trim()),
    ({ input }) =>
      `${JSON.stringify(input)} can never match a sender; write an address such as ada@example.com, a domain such as example.com, or *`,
  ),
)

const keys = v.object({
  enabled: v.optional(v.boolean(), false),
  topic: v.pipe(
    v.string(),
    v.regex(/^projects\/[^/\s]+\/topics\/[^/\s]+$/, 'Not a topic: it has to look like projects/<project>/topics/<topic>'),
    v.description('The topic the mail provider publishes to, projects/P/topics/T'),
  ),
  oauth_token: v.optional(
    v.pipe(
      headerSecret({ env: ['MAILPUSH_OAUTH_TOKEN'] }),
      v.description('Of the mail API; lives about an hour, after which refresh_token, if set, gets another'),
    ),
  ),
  client_id: v.optional(described('Of the OAuth client refresh_token was issued to')),
  client_secret: v.optional(v.pipe(secretText(), v.description('Of the same OAuth client'))),
  refresh_token: v.optional(v.pipe(secretText(), v.description('Gets a new access token whenever one is needed'))),
  label_filter: v.optional(v.pipe(v.array(word), v.description('Labels to watch; empty: the whole mailbox')), ['INBOX']),
  allowed_senders: v.optional(
    v.pipe(
      v.array(allowedSender),
      v.description('Addresses (ada@example.com) or domains (example.com); * allows every sender, an empty list none'),
    ),
    [],
  ),
  webhook_url: v.optional(v.pipe(url, v.description('The public URL registered on the push subscription, and the audience of its tokens'))),
  webhook_secret: v.optional(
    v.pipe(secretText({ env: ['MAILPUSH_WEBHOOK_SECRET'] }), v.description('What a push has to present, as a bearer or as ?token=')),
  ),
  service_account: v.optional(described('The e-mail address in the signed tokens of the push subscription; needs webhook_url')),
  api_url: v.optional(url, 'https://gmail.googleapis.com'),
  token_url: v.optional(url, 'https://oauth2.googleapis.com/token'),
  jwks_url: v.optional(
    v.pipe(url, v.description('The keys that push tokens are signed with')),
    'https://www.googleapis.com/oauth2/v3/certs',
  ),
})

export const mailpushSection = {
  path: 'channels_config.mailpush',
  schema: v.pipe(
    keys,
    v.check(
      ({ service_account, webhook_url }) => service_account === undefined || webhook_url !== undefined,
      'service_account needs webhook_url, which the tokens of that account have to name',
    ),
    v.check(
      ({ client_id, client_secret, refresh_token }) =>
        new Set([client_id, client_secret, refresh_token].map((value) => value === undefined)).size === 1,
      'client_id, client_secret and refresh_token belong together: set all three or none of them',
    ),
  ),
} as const

export type MailpushConfig = v.InferOutput<typeof mailpushSection.schema>
