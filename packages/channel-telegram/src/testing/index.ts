/** The fake of Telegram on loopback, for tests of this package and of the whole product. */
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
