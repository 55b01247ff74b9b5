import { channelConformance } from '@sluice/testkit/channel'
import { testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { afterAll } from 'vitest'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { snowflakeBefore } from './snowflake.ts'
import { discordArrivals } from './testing/arrivals.ts'
import { DISCORD_BOT, DISCORD_CHANNEL, DISCORD_GUILD, DISCORD_TOKEN, DISCORD_USER, startDiscordFake } from './testing/fake.ts'

const { clock } = testHost()
const fake = await startDiscordFake({ nowMs: () => clock.nowMs() })
const hello = fake.say({ text: `<@${DISCORD_BOT}> hello` })
const answer = fake.say({ text: 'and this', replyTo: hello })
afterAll(() => fake.close())

const inbound = (id: string) => ({
  id,
  account: DISCORD_BOT,
  sender: DISCORD_USER,
  name: `user-${DISCORD_USER}`,
  to: { to: DISCORD_CHANNEL, replyTo: id },
  sentAtMs: clock.nowMs(),
})

channelConformance({
  names: ABILITIES.names,
  feature,
  config: { bot_token: DISCORD_TOKEN, api_url: fake.apiUrl, allowed_users: [DISCORD_USER] },
  allowKey: 'allowed_users',
  secrets: [DISCORD_TOKEN],
  arrivals: discordArrivals,
  send: {
    to: { to: DISCORD_CHANNEL, replyTo: hello },
    answer: () => Response.json({ id: '1190000000000000001' }),
    id: '1190000000000000001',
  },
  // These messages were written before the channel connects, so it fetches them from the history.
  listen: {
    host() {
      const keyValue = memoryKeyValue()
      void keyValue.set('cursors', { [DISCORD_CHANNEL]: { after: snowflakeBefore(hello), guild: DISCORD_GUILD } })
      return { fetch, keyValue }
    },
    expect: [
      { ...inbound(hello), text: 'hello', addressed: 'mention' },
      {
        ...inbound(answer),
        text: 'and this',
        addressed: 'overheard',
        inReplyTo: hello,
        quoted: { id: hello, by: 'sender', author: { name: `user-${DISCORD_USER}`, id: DISCORD_USER }, text: 'hello' },
      },
    ],
    async platform(nowMs) {
      const platform = await startDiscordFake({ nowMs })
      return {
        fake: platform,
        config: { bot_token: DISCORD_TOKEN, api_url: platform.apiUrl, allowed_users: ['*'] },
        say: (text) => void platform.say({ text }),
        refuse: () => platform.changeToken('another token'),
      }
    },
  },
})
