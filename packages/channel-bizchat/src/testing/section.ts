/** The section that connects the channel to its fake. */
import type { SectionValues } from '@sluice/testkit/section-values'
import { BIZCHAT_TOKEN, type BizchatFake } from './fake.ts'

export const BIZCHAT_SECRET = 'bizchat-webhook-secret-01'

export const sectionOf = (fake: BizchatFake): SectionValues => ({
  api_token: BIZCHAT_TOKEN,
  api_url: fake.url,
  webhook_secret: BIZCHAT_SECRET,
  allowed_numbers: ['*'],
})
