import type { Inbound } from '@sluice/sdk'
import { channelConformance } from '@sluice/testkit/channel'
import { afterAll } from 'vitest'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { slackArrivals } from './testing/arrivals.ts'
import { startSlackFake } from './testing/fake.ts'
import { TOKENS } from './testing/test-channel.ts'

const fake = await startSlackFake()
afterAll(() => fake.close())

const base = { account: 'A0123', sender: 'UADA', name: 'ada' }
const golden: readonly Inbound[] = [
  {
    ...base,
    id: 'C1:1767225601.000100',
    to: { to: 'C1', thread: '1767225601.000100' },
    text: 'is 1 < 2?',
    addressed: 'mention',
    sentAtMs: 1_767_225_601_000,
  },
  { ...base, id: 'D1:1767225602.000100', to: { to: 'D1' }, text: 'and here?', addressed: 'direct', sentAtMs: 1_767_225_602_000 },
  {
    ...base,
    id: 'C2:1767225603.000100',
    to: { to: 'C2', thread: '1767225603.000100' },
    text: 'lunch?',
    addressed: 'overheard',
    sentAtMs: 1_767_225_603_000,
  },
]
let isWritten = false

channelConformance({
  names: ABILITIES.names,
  feature,
  config: { ...TOKENS, api_url: fake.apiUrl, channel_ids: ['C1', 'D1', 'C2'], allowed_users: ['UADA'] },
  allowKey: 'allowed_users',
  secrets: Object.values(TOKENS),
  arrivals: slackArrivals,
  send: {
    to: { to: 'C1', thread: '1767225601.000100' },
    answer: () => Response.json({ ok: true, channel: 'C1', ts: '1767225700.000100' }),
    id: '1767225700.000100',
  },
  listen: {
    host() {
      // Each test host starts at the same time, which is before these messages.
      if (!isWritten) {
        fake.say({ text: '<@USLUICE> is 1 &lt; 2?', isLost: true })
        fake.say({ text: 'and here?', channel: 'D1', isLost: true })
        fake.say({ text: 'lunch?', channel: 'C2', isLost: true })
      }
      isWritten = true
      return { fetch }
    },
    expect: golden,
    canFallSilent: true,
    async platform() {
      const platform = await startSlackFake()
      return {
        fake: platform,
        config: { ...TOKENS, api_url: platform.apiUrl, channel_ids: ['C1'] },
        say: (text) => void platform.say({ text }),
        fallSilent: () => platform.socket.cut('mute'),
        refuse: () => platform.change({ bot_token: 'xoxb-another', app_token: 'xapp-another' }),
      }
    },
  },
})
