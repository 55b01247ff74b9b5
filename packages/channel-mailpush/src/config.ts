/** The section `[channels_config.mailpush]`. */
import { isAddress, isDomain } from '@sluice/mail-common'
import { headerSecret, secretText } from '@sluice/sdk'
import * as v from 'valibot'

const url = v.pipe(v.string(), v.url(), v.regex(/^https?:/i, 'Not an http or https URL'))
const text = v.pipe(v.string(), v.minLength(1))
const described = (description: string) => v.pipe(text, v.description(description))

const allowedSender = v.pipe(
  v.string(),
  v.check(
    (entry) => entry === '*' || isAddress(entry.trim()) || isDomain(entry.trim()),
    ({ input }) =>
      `${JSON.stringify(input)} can never match a sender; write an address such as ada@example.com, a domain such as example.com, or *`,
  ),
)

const keys = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('True enables the channel')), false),
  topic: v.pipe(
    v.string(),
    v.regex(/^projects\/[^/\s]+\/topics\/[^/\s]+$/, 'Not a topic: it must have the form projects/<project>/topics/<topic>'),
    v.description('The Pub/Sub topic that Gmail publishes to, projects/P/topics/T'),
  ),
  oauth_token: v.optional(
    v.pipe(
      headerSecret({ env: ['MAILPUSH_OAUTH_TOKEN'] }),
      v.description('Access token of the mail API; expires after about an hour, and refresh_token, if set, gets a new one'),
    ),
  ),
  client_id: v.optional(described('The id of the OAuth client that refresh_token was issued to')),
  client_secret: v.optional(v.pipe(secretText(), v.description('The secret of the same OAuth client'))),
  refresh_token: v.optional(v.pipe(secretText(), v.description('The token that gets new access tokens'))),
  label_filter: v.optional(v.pipe(v.array(text), v.description('Labels of the mails to read; an empty list reads the whole mailbox')), [
    'INBOX',
  ]),
  allowed_senders: v.optional(
    v.pipe(
      v.array(allowedSender),
      v.description('Addresses (ada@example.com) or domains (example.com); * allows every sender, an empty list none'),
    ),
    [],
  ),
  webhook_url: v.optional(v.pipe(url, v.description('The public URL of the push subscription, and the audience of its signed tokens'))),
  webhook_secret: v.optional(
    v.pipe(
      secretText({ env: ['MAILPUSH_WEBHOOK_SECRET'] }),
      v.description('The secret each push must bring, as a bearer token or as ?token='),
    ),
  ),
  service_account: v.optional(described('The mail address in the signed tokens of the push subscription; needs webhook_url')),
  api_url: v.optional(v.pipe(url, v.description('Base URL of the mail API')), 'https://gmail.googleapis.com'),
  token_url: v.optional(v.pipe(url, v.description('URL that returns access tokens')), 'https://oauth2.googleapis.com/token'),
  jwks_url: v.optional(
    v.pipe(url, v.description('URL of the keys that verify signed tokens')),
    'https://www.googleapis.com/oauth2/v3/certs',
  ),
})

export const mailpushSection = {
  path: 'channels_config.mailpush',
  schema: v.pipe(
    keys,
    v.check(
      ({ service_account, webhook_url }) => service_account === undefined || webhook_url !== undefined,
      'service_account needs webhook_url, which the tokens of that account must name',
    ),
    v.check(
      ({ client_id, client_secret, refresh_token }) =>
        new Set([client_id, client_secret, refresh_token].map((value) => value === undefined)).size === 1,
      'client_id, client_secret and refresh_token belong together: set all three or none of them',
    ),
  ),
} as const

export type MailpushConfig = v.InferOutput<typeof mailpushSection.schema>
