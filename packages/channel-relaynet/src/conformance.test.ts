import { channelConformance } from '@sluice/testkit/channel'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { afterAll } from 'vitest'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { relaynetArrivals } from './testing/arrivals.ts'
import { pubkeyOf } from './testing/people.ts'
import { BOT_KEY, connect, sectionOf } from './testing/section.ts'

/** The time at which the clock of each test host begins. */
const START_MS = Date.UTC(2026, 0, 1)
const { fake } = await connect({ nowMs: () => START_MS })
afterAll(() => fake.close())
const ada = pubkeyOf('ada')
const account = pubkeyOf('bot')
const first = fake.say({ text: 'hello', atMs: START_MS - 2000 })
const second = fake.say({ text: 'hi', protocol: 'nip04', atMs: START_MS - 1000 })
const common = { account, sender: ada, addressed: 'direct' } as const

channelConformance({
  names: ABILITIES.names,
  feature,
  config: { ...sectionOf(fake), allowed_pubkeys: [ada] },
  allowKey: 'allowed_pubkeys',
  secrets: [BOT_KEY],
  arrivals: relaynetArrivals,
  listen: {
    host() {
      const keyValue = memoryKeyValue()
      const at = String(START_MS - 60_000)
      void keyValue.set('positions', { [fake.relayUrl]: { after: at, begin: at } })
      return { keyValue }
    },
    expect: [
      { ...common, id: first, to: { to: ada, replyTo: first }, text: 'hello', sentAtMs: START_MS - 2000 },
      { ...common, id: second, to: { to: ada, replyTo: second, more: { protocol: 'nip04' } }, text: 'hi', sentAtMs: START_MS - 1000 },
    ],
    canFallSilent: true,
    async platform(nowMs) {
      const { fake: platform, section } = await connect({ nowMs })
      return {
        fake: platform,
        config: section,
        say: (text) => void platform.say({ text }),
        fallSilent: () => platform.mute(),
        refuse: () => platform.lock(),
      }
    },
  },
})
