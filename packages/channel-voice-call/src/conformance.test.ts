import { channelConformance } from '@sluice/testkit/channel'
import { loadFixtures } from '@sluice/testkit/channel-fixtures'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { sectionOf, TELNYX_TOKEN, telnyxHeaders } from './testing/index.ts'

const ALWAYS_VERIFIED = 'every request is verified: the section cannot be without the secret'

channelConformance({
  names: ABILITIES.names,
  feature,
  config: { ...sectionOf({ url: 'https://api.telnyx.com/v2' }), allowed_numbers: ['+15550004444'] },
  allowKey: 'allowed_numbers',
  secrets: [TELNYX_TOKEN],
  webhook: {
    fixtures: loadFixtures(new URL('../fixtures/', import.meta.url)),
    own: 'own',
    secretKey: 'auth_token',
    prove: (body, atMs) => ({ headers: telnyxHeaders(body, atMs) }),
  },
  send: {
    to: { to: '+15550004444', more: { call: 'v3:abc' } },
    answer: () => Response.json({ data: { result: 'ok' } }),
    id: 'v3:abc/client-message-1',
  },
  except: [
    { rule: 'without a secret every request is accepted and the missing key is named', why: ALWAYS_VERIFIED },
    { rule: 'a sample request is accepted and parses to its message', why: 'only Telnyx has the private key that signs its requests' },
  ],
})
