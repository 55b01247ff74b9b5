/** The fake of Telegram on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { chat } from './chat.ts'
import { crashKind } from './crash-kind.ts'
import { startTelegramFake, TELEGRAM_TOKEN, type TelegramFake } from './fake.ts'

export {
  startTelegramFake,
  TELEGRAM_ADA,
  TELEGRAM_FORUM,
  TELEGRAM_GROUP,
  TELEGRAM_TOKEN,
  type TelegramFake,
  type TelegramFakeOptions,
  type TelegramSaid,
} from './fake.ts'
export type { TelegramMessage } from './fake-chats.ts'

export const testing: ChannelTesting<TelegramFake> = {
  async connect() {
    const fake = await startTelegramFake()
    return { fake, section: { bot_token: TELEGRAM_TOKEN, allowed_users: ['*'], api_url: fake.url } }
  },
  crashKind,
  chat,
}
