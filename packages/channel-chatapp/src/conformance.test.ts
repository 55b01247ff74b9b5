import { hmacSha256 } from '@sluice/sdk'
import { channelConformance } from '@sluice/testkit/channel'
import { loadFixtures } from '@sluice/testkit/channel-fixtures'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { chatappArrivals } from './testing/arrivals.ts'

const APP_SECRET = 'sample-app-secret'

channelConformance({
  names: ABILITIES.names,
  feature,
  config: {
    access_token: 'sample-access-token',
    phone_number_id: '200000000000002',
    verify_token: 'sample-verify-token',
    app_secret: APP_SECRET,
    allowed_numbers: ['+15550002222'],
  },
  allowKey: 'allowed_numbers',
  secrets: ['sample-access-token', 'sample-verify-token', APP_SECRET],
  arrivals: chatappArrivals,
  webhook: {
    fixtures: loadFixtures(new URL('../fixtures/', import.meta.url)),
    own: 'own',
    prove: (body) => ({ headers: { 'X-Hub-Signature-256': `sha256=${hmacSha256(APP_SECRET, body).toString('hex')}` } }),
    secretKey: 'app_secret',
    handshake: {
      query: { 'hub.mode': 'subscribe', 'hub.verify_token': 'sample-verify-token', 'hub.challenge': '1158201444' },
      tokenKey: 'hub.verify_token',
      challengeKey: 'hub.challenge',
    },
  },
  send: {
    to: { to: '+15550002222', replyTo: 'wamid.HBgL0001' },
    answer: () => Response.json({ messaging_product: 'whatsapp', contacts: [], messages: [{ id: 'wamid.SENT1' }] }),
    id: 'wamid.SENT1',
  },
  except: [
    {
      rule: 'a stale proof is unauthorized, whether from the past or from the future',
      why: 'the platform signs no time; a repeated message has the same id',
    },
  ],
})
