import { channelConformance } from '@sluice/testkit/channel'
import { testHost } from '@sluice/testkit/host'
import { memorySecrets } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { afterAll, expect, test } from 'vitest'
import { ABILITIES } from './abilities.ts'
import { fedchatSection } from './config.ts'
import feature from './index.ts'
import { fedchatArrivals } from './testing/arrivals.ts'
import { FEDCHAT_BOT, FEDCHAT_PEOPLE, FEDCHAT_ROOM, FEDCHAT_TOKEN } from './testing/fake.ts'
import { connect, sectionOf } from './testing/section.ts'

/** The time at which the clock of each test host begins. */
const START_MS = Date.UTC(2026, 0, 1)
const { fake } = await connect({ nowMs: () => START_MS })
afterAll(() => fake.close())
const before = fake.state.now()
const hello = fake.say({ text: 'hello' })
const [ada, bob] = FEDCHAT_PEOPLE
fake.say({ text: 'my own message', from: FEDCHAT_BOT })
const thread = fake.say({ text: 'sluice: hi', from: bob, thread: hello })
/** Kept by all hosts, because the homeserver refuses other keys of one device. */
const secrets = memorySecrets({ 'state/identity': JSON.stringify({ userId: FEDCHAT_BOT, deviceId: 'SLUICEDEV' }) })
const common = { account: new URL(fake.url).host, sentAtMs: START_MS }

channelConformance({
  names: ABILITIES.names,
  feature,
  config: sectionOf(fake),
  allowKey: 'allowed_users',
  secrets: [FEDCHAT_TOKEN],
  arrivals: fedchatArrivals,
  listen: {
    host() {
      void secrets.set('state/position', JSON.stringify({ token: `s${before}`, atMs: START_MS }))
      return { fetch, secrets }
    },
    expect: [
      {
        ...common,
        id: hello,
        sender: ada,
        name: `Name of ${ada}`,
        to: { to: FEDCHAT_ROOM, replyTo: hello, more: { sender: ada } },
        addressed: 'overheard',
        text: 'hello',
      },
      {
        ...common,
        id: thread,
        sender: bob,
        name: `Name of ${bob}`,
        to: { to: FEDCHAT_ROOM, replyTo: thread, thread: hello, more: { sender: bob } },
        addressed: 'mention',
        text: 'hi',
      },
    ],
    async platform(nowMs) {
      const { fake: platform, section } = await connect({ nowMs })
      return {
        fake: platform,
        config: section,
        say: (text) => void platform.say({ text }),
        refuse: () => platform.logOut(false),
      }
    },
  },
})

test('changed messages of threads are looked for in all threads, because Matrix reports edits and redactions without the thread', () => {
  const [channel] = feature.build(testHost({ fetch }), v.parse(fedchatSection.schema, sectionOf(fake))).channels ?? []
  expect(channel?.changesLackThread).toBe(true)
})
