/** The section that connects the channel to its fake. */
import type { SectionValues } from '@sluice/testkit/section-values'
import type { RoomchatFake } from './fake.ts'

export const sectionOf = (fake: RoomchatFake): SectionValues => ({
  base_url: fake.url,
  app_token: fake.appToken,
  webhook_secret: fake.secret,
  allowed_users: ['*'],
})
