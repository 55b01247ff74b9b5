/** The fake of Discord on loopback, for tests of this package and of the whole product. */
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
