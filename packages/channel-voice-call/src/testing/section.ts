/** The section that connects the channel to its fake. */
import type { SectionValues } from '@sluice/testkit/section-values'
import { ACCOUNT, AUTH_TOKEN, OUR_NUMBER, TELNYX_TOKEN, type VoiceFake } from './fake.ts'
import { TELNYX_PUBLIC_KEY } from './keys.ts'

export const BASE_URL = 'https://gw.example.com'

const common = { enabled: true, from_number: OUR_NUMBER, webhook_base_url: BASE_URL, allowed_numbers: ['*'] } as const

/** Calls through Telnyx, which drops repeated commands. */
export const sectionOf = ({ url }: Pick<VoiceFake, 'url'>): SectionValues => ({
  ...common,
  provider: 'telnyx',
  auth_token: TELNYX_TOKEN,
  public_key: TELNYX_PUBLIC_KEY,
  connection_id: 'connection-1',
  max_calls: 100,
  api_url: url,
})

/** Calls through one of the providers that post forms. */
export const formSectionOf = (provider: 'twilio' | 'plivo', { url }: Pick<VoiceFake, 'url'>): SectionValues => ({
  ...common,
  provider,
  account_id: ACCOUNT,
  auth_token: AUTH_TOKEN,
  api_url: provider === 'twilio' ? `${url}/2010-04-01` : `${url}/v1`,
})
