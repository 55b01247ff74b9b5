import { channelConformance } from '@sluice/testkit/channel'
import { loadFixtures } from '@sluice/testkit/channel-fixtures'
import { afterAll, expect } from 'vitest'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { qqArrivals } from './testing/arrivals.ts'
import { BOT } from './testing/fake.ts'
import { keyOf, SIGNATURE, signatureOf, TIMESTAMP } from './testing/scheme.ts'
import { connect } from './testing/section.ts'

const START_MS = Date.UTC(2026, 0, 1)
const key = keyOf(BOT.app_secret)
const more = { msg: expect.any(String), atMs: String(START_MS) }
const base = { account: BOT.app_id, sender: 'OPENID_ADA', sentAtMs: START_MS }

const { fake, section } = await connect({ nowMs: () => START_MS, keepMs: Number.MAX_SAFE_INTEGER })
afterAll(() => fake.close())

channelConformance({
  names: ABILITIES.names,
  feature,
  config: section,
  allowKey: 'allowed_users',
  secrets: [BOT.app_secret],
  webhook: {
    fixtures: loadFixtures(new URL('../fixtures/', import.meta.url)),
    own: 'own',
    secretKey: 'app_secret',
    prove(body, atMs) {
      const timestamp = String(Math.floor(atMs / 1000))
      return { headers: { [SIGNATURE]: signatureOf(key, timestamp, body), [TIMESTAMP]: timestamp } }
    },
  },
  arrivals: qqArrivals,
  send: {
    to: { to: 'group:GROUP1', replyTo: 'm-1', more: { msg: 'm-1', atMs: String(START_MS) } },
    prior: ({ url }) => (url.endsWith('/getAppAccessToken') ? Response.json({ access_token: 'token-1', expires_in: '7200' }) : undefined),
    answer: () => Response.json({ id: 'ROBOT1.0_1', timestamp: '2026-01-01T08:00:00+08:00' }),
    id: 'ROBOT1.0_1',
  },
  listen: {
    host() {
      // QQ keeps nothing for a bot that was never connected.
      fake.gateway.onReady = () => {
        fake.say({ text: 'hello' })
        fake.say({ text: 'and here', group: 'GROUP1' })
      }
      return { fetch }
    },
    expect: [
      {
        ...base,
        id: expect.any(String),
        to: { to: 'user:OPENID_ADA', replyTo: expect.any(String), more },
        addressed: 'direct',
        text: 'hello',
      },
      {
        ...base,
        id: expect.any(String),
        to: { to: 'group:GROUP1', replyTo: expect.any(String), more },
        addressed: 'mention',
        text: 'and here',
      },
    ],
    canFallSilent: true,
    async platform(nowMs) {
      const connected = await connect({ nowMs })
      return {
        fake: connected.fake,
        config: connected.section,
        say: (text) => void connected.fake.say({ text }),
        fallSilent: () => connected.fake.gateway.mute(),
        refuse: () => connected.fake.changeSecret(),
      }
    },
  },
  except: [
    {
      rule: 'without a secret every request is accepted and the missing key is named',
      why: 'the secret of the webhook is that of the bot, which the channel cannot work without',
    },
  ],
})
