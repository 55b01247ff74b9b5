import { channelConformance } from '@sluice/testkit/channel'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { afterAll } from 'vitest'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { ircArrivals } from './testing/arrivals.ts'
import { IRC_PASSWORD } from './testing/fake.ts'
import { connect, sectionOf } from './testing/section.ts'

/** The time at which the clock of each test host begins. */
const START_MS = Date.UTC(2026, 0, 1)
const { fake } = await connect({ nowMs: () => START_MS })
afterAll(() => fake.close())
fake.say({ text: 'sluice: hello' })
fake.say({ text: '\x02hi\x02', from: 'Bob', account: null, to: 'sluice' })
fake.say({ text: 'lunch?' })
const account = 'sluice@127.0.0.1'

channelConformance({
  names: ABILITIES.names,
  feature,
  config: sectionOf(fake),
  allowKey: 'allowed_users',
  secrets: [IRC_PASSWORD],
  arrivals: ircArrivals,
  listen: {
    host() {
      const keyValue = memoryKeyValue()
      void keyValue.set('positions', { [account]: { after: String(START_MS - 1000) } })
      return { keyValue }
    },
    expect: [
      {
        id: 'm-1',
        account,
        sender: 'account:ada',
        name: 'ada',
        to: { to: '#ops', replyTo: 'm-1', more: { nick: 'ada' } },
        addressed: 'mention',
        text: 'hello',
        sentAtMs: START_MS,
      },
      {
        id: 'm-3',
        account,
        sender: 'account:ada',
        name: 'ada',
        to: { to: '#ops', replyTo: 'm-3', more: { nick: 'ada' } },
        addressed: 'overheard',
        text: 'lunch?',
        sentAtMs: START_MS,
      },
      {
        id: 'm-2',
        account,
        sender: 'bob',
        name: 'Bob',
        unverified: true,
        to: { to: 'Bob', replyTo: 'm-2' },
        addressed: 'direct',
        text: 'hi',
        sentAtMs: START_MS,
      },
    ],
    canFallSilent: true,
    async platform(nowMs) {
      const { fake: platform, section } = await connect({ nowMs })
      return {
        fake: platform,
        config: section,
        say: (text) => void platform.say({ text }),
        fallSilent: () => platform.mute(),
        refuse: () => platform.changePassword('another-password'),
      }
    },
  },
})
