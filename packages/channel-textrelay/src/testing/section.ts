/** The section that connects the channel to its fake. */
import type { SectionValues } from '@sluice/testkit/section-values'
import { TEXTRELAY_TOKEN, type TextrelayFake } from './fake.ts'
import { TEXTRELAY_SECRET } from './vectors.ts'

export const sectionOf = (fake: TextrelayFake): SectionValues => ({
  api_token: TEXTRELAY_TOKEN,
  from_phone: '+15550001111',
  signing_secret: TEXTRELAY_SECRET,
  allowed_senders: ['*'],
  api_url: fake.apiUrl,
})
