import { createHmac } from 'node:crypto'
import { channelConformance } from '@sluice/testkit/channel'
import { loadFixtures } from '@sluice/testkit/channel-fixtures'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { lineArrivals } from './testing/arrivals.ts'
import { LINE_TOKEN, LINE_USER } from './testing/fake.ts'
import { LINE_SECRET } from './testing/section.ts'

channelConformance({
  names: ABILITIES.names,
  feature,
  config: { channel_access_token: LINE_TOKEN, channel_secret: LINE_SECRET, allowed_users: [LINE_USER], group_policy: 'open' },
  allowKey: 'allowed_users',
  secrets: [LINE_TOKEN, LINE_SECRET],
  webhook: {
    fixtures: loadFixtures(new URL('../fixtures/', import.meta.url)),
    own: 'own',
    secretKey: 'channel_secret',
    prove: (body) => ({ headers: { 'X-Line-Signature': createHmac('sha256', LINE_SECRET).update(body).digest('base64') } }),
  },
  arrivals: lineArrivals,
  send: {
    to: { to: LINE_USER, replyTo: '0f3779fba3b349968c5d07db31eab56f' },
    answer: () => Response.json({ sentMessages: [{ id: '461230966842064897', quoteToken: 'IStG5h1Tz7b' }] }),
    id: '461230966842064897',
  },
  except: [
    {
      rule: 'a stale proof is unauthorized, whether from the past or from the future',
      why: 'LINE signs the times of events and no time of the request, so `webhook.test.ts` has this rule with 71 hours',
    },
  ],
})
