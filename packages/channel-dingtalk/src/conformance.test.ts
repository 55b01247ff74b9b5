import { channelConformance } from '@sluice/testkit/channel'
import { afterAll, expect } from 'vitest'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { dingtalkArrivals } from './testing/arrivals.ts'
import { CLIENT } from './testing/fake.ts'
import { connect } from './testing/section.ts'

const START_MS = Date.UTC(2026, 0, 1)
const { fake, section } = await connect({ nowMs: () => START_MS, keepMs: Number.MAX_SAFE_INTEGER })
afterAll(() => fake.close())
const more = { session: expect.stringMatching(/^[0-9a-f-]{36}$/), untilMs: String(START_MS + 5_400_000), staff: 'staff01' }
const base = { account: CLIENT.client_id, sender: 'staff01', name: 'Ada', sentAtMs: START_MS }

channelConformance({
  names: ABILITIES.names,
  feature,
  config: section,
  allowKey: 'allowed_users',
  secrets: [CLIENT.client_secret],
  arrivals: dingtalkArrivals,
  send: {
    to: { to: 'group:cidOps==', replyTo: 'msg1==', more: { staff: 'staff01', session: 'session-1', untilMs: '9999999999999' } },
    answer: () => Response.json({ errcode: 0, errmsg: 'ok' }),
    id: 'reply-client-message-1',
  },
  listen: {
    host() {
      // A rule may leave messages behind that were not acknowledged.
      fake.stream.forget()
      fake.say({ text: 'hello' })
      fake.say({ text: 'and here', group: 'cidOps==' })
      return { fetch }
    },
    expect: [
      { ...base, id: expect.any(String), to: { to: 'staff01', replyTo: expect.any(String), more }, addressed: 'direct', text: 'hello' },
      {
        ...base,
        id: expect.any(String),
        to: { to: 'group:cidOps==', replyTo: expect.any(String), more },
        addressed: 'mention',
        text: 'and here',
      },
    ],
    canFallSilent: true,
    async platform(nowMs) {
      const connected = await connect({ nowMs, keepMs: 60_000 })
      return {
        fake: connected.fake,
        config: connected.section,
        say: (text) => void connected.fake.say({ text }),
        fallSilent: () => connected.fake.stream.mute(),
        refuse: () => connected.fake.changeSecret(),
      }
    },
  },
})
