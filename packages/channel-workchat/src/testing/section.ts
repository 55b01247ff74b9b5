/** The sections that connect the channel to its fake. */
import type { SectionValues } from '@sluice/testkit/section-values'
import { WORKCHAT_APP_ID, WORKCHAT_APP_SECRET, WORKCHAT_ENCRYPT_KEY, type WorkchatFake } from './fake.ts'

const credentials = ({ url }: Pick<WorkchatFake, 'url'>) => ({
  app_id: WORKCHAT_APP_ID,
  app_secret: WORKCHAT_APP_SECRET,
  allowed_users: ['*'],
  api_url: url,
})

/** Receives over a long connection. */
export const socketSection = (fake: Pick<WorkchatFake, 'url'>): SectionValues => credentials(fake)

/** Receives encrypted and signed requests. */
export const webhookSection = (fake: Pick<WorkchatFake, 'url'>): SectionValues => ({
  ...credentials(fake),
  receive_mode: 'webhook',
  encrypt_key: WORKCHAT_ENCRYPT_KEY,
})
