/** The section that connects the channel to its fake. */
import type { SectionValues } from '@sluice/testkit/section-values'
import type { MailpushFake } from './fake.ts'
import { PUSH_ACCOUNT, PUSH_URL } from './vectors.ts'

export const MAILPUSH_SECRET = 'mailpush-secret-01'

export const sectionOf = (fake: MailpushFake): SectionValues => ({
  enabled: true,
  topic: 'projects/p/topics/t',
  oauth_token: 'oauth-token-01',
  webhook_secret: MAILPUSH_SECRET,
  webhook_url: PUSH_URL,
  service_account: PUSH_ACCOUNT,
  allowed_senders: ['*'],
  api_url: fake.url,
  token_url: `${fake.url}/token`,
  jwks_url: `${fake.url}/oauth2/v3/certs`,
})
