import { channelConformance } from '@sluice/testkit/channel'
import { testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { afterAll } from 'vitest'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { mattermostArrivals } from './testing/arrivals.ts'
import { MATTERMOST_CHANNEL, MATTERMOST_DIRECT, MATTERMOST_TOKEN, MATTERMOST_USER, startMattermostFake } from './testing/fake.ts'
import { idOf } from './testing/fake-posts.ts'
import { connect, sectionOf } from './testing/section.ts'

const { clock } = testHost()
const fake = await startMattermostFake({ nowMs: () => clock.nowMs() })
const hello = fake.say({ text: '@sluice: hello', isLost: true })
const lunch = fake.say({ text: 'lunch?', isLost: true })
const direct = fake.say({ text: 'and here?', channel: MATTERMOST_DIRECT, isLost: true })
afterAll(() => fake.close())

const inbound = { account: new URL(fake.url).host, sender: MATTERMOST_USER, name: 'Ada Lovelace', sentAtMs: clock.nowMs() }

channelConformance({
  names: ABILITIES.names,
  feature,
  config: { ...sectionOf(fake), allowed_users: [MATTERMOST_USER] },
  allowKey: 'allowed_users',
  secrets: [MATTERMOST_TOKEN],
  arrivals: mattermostArrivals,
  send: {
    to: { to: MATTERMOST_CHANNEL, thread: hello },
    answer: () => Response.json({ id: idOf('p', 99) }, { status: 201 }),
    id: idOf('p', 99),
  },
  // These messages were written before the channel connects, so it reads them from the conversations.
  listen: {
    host() {
      const keyValue = memoryKeyValue()
      void keyValue.set('cursors', { posts: { after: String(clock.nowMs()) } })
      return { fetch, keyValue }
    },
    expect: [
      { ...inbound, id: hello, to: { to: MATTERMOST_CHANNEL, thread: hello }, addressed: 'mention', text: 'hello' },
      { ...inbound, id: lunch, to: { to: MATTERMOST_CHANNEL, thread: lunch }, addressed: 'overheard', text: 'lunch?' },
      { ...inbound, id: direct, to: { to: MATTERMOST_DIRECT }, addressed: 'direct', text: 'and here?' },
    ],
    canFallSilent: true,
    async platform(nowMs) {
      const { fake: platform, section } = await connect({ nowMs })
      return {
        fake: platform,
        config: section,
        say: (text) => void platform.say({ text }),
        fallSilent: () => platform.sockets.cut('mute'),
        refuse: () => platform.revoke(),
      }
    },
  },
})
