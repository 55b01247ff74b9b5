/** The fake of Discord on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { chat } from './chat.ts'
import { crashKind } from './crash-kind.ts'
import { DISCORD_TOKEN, type DiscordFake, startDiscordFake } from './fake.ts'

export {
  DISCORD_BOT,
  DISCORD_CHANNEL,
  DISCORD_DIRECT,
  DISCORD_ELSEWHERE,
  DISCORD_GUILD,
  DISCORD_OTHER_CHANNEL,
  DISCORD_TOKEN,
  DISCORD_USER,
  type DiscordFake,
  type DiscordFakeOptions,
  type DiscordMessage,
  type DiscordSaid,
  startDiscordFake,
} from './fake.ts'

export const testing: ChannelTesting<DiscordFake> = {
  async connect(nowMs) {
    const fake = await startDiscordFake({ nowMs })
    return { fake, section: { bot_token: DISCORD_TOKEN, allowed_users: ['*'], api_url: fake.apiUrl } }
  },
  crashKind,
  chat,
}
