/** The section that connects the channel to its fake. */
import type { SectionValues } from '@sluice/testkit/section-values'
import { LINE_TOKEN, type LineFake } from './fake.ts'

export const LINE_SECRET = 'line-secret-01'

export const sectionOf = ({ url }: Pick<LineFake, 'url'>): SectionValues => ({
  channel_access_token: LINE_TOKEN,
  channel_secret: LINE_SECRET,
  allowed_users: ['*'],
  api_url: url,
})
