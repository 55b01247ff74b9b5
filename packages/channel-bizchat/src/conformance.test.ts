import { channelConformance } from '@sluice/testkit/channel'
import { loadFixtures } from '@sluice/testkit/channel-fixtures'
import { describe } from 'vitest'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { bizchatArrivals } from './testing/arrivals.ts'
import { BIZCHAT_TOKEN } from './testing/fake.ts'

const SECRET = 'bizchat-webhook-secret-01'

describe.each([
  ['token in the URL', { query: { token: SECRET } }],
  ['bearer token', { headers: { Authorization: `Bearer ${SECRET}` } }],
])('%s', (_proof, proof) => {
  channelConformance({
    names: ABILITIES.names,
    feature,
    config: {
      api_token: BIZCHAT_TOKEN,
      api_url: 'https://host.example',
      webhook_secret: SECRET,
      allowed_numbers: ['+15550002222'],
    },
    allowKey: 'allowed_numbers',
    secrets: [BIZCHAT_TOKEN, SECRET],
    arrivals: bizchatArrivals,
    webhook: {
      fixtures: loadFixtures(new URL('../fixtures/', import.meta.url)),
      own: 'own',
      secretKey: 'webhook_secret',
      prove: () => proof,
      covers: 'nothing',
      handshake: { query: { 'hub.challenge': '12345' }, tokenKey: 'hub.verify_token', challengeKey: 'hub.challenge' },
    },
    send: {
      to: { to: '15550002222' },
      answer: () => Response.json({ message: { id: 'sent-1', text: 'hello' } }),
      id: 'sent-1',
    },
    except: [
      {
        rule: 'a wrong handshake token is 403, a missing challenge 400',
        why: 'the check of the platform brings no token; webhook.test.ts tests the 400',
      },
    ],
  })
})
