/** Messages of telegram: each sender writes in a private chat, and the platform keeps updates until a later poll confirms them. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { startTelegramFake, TELEGRAM_TOKEN } from './fake.ts'

const SENDERS = ['2001', '2002', '2003', '2004'] as const

export async function crashKind(): Promise<CrashKind> {
  const fake = await startTelegramFake({ chats: [] })
  return {
    fake,
    section: { bot_token: TELEGRAM_TOKEN, allowed_users: ['*'], api_url: fake.url },
    senders: SENDERS,
    isPulled: true,
    write({ sender, text }) {
      const { chat, id } = fake.say({ from: { id: Number(sender) }, text })
      return `${chat}:${id}`
    },
    delivered: () => fake.sent().map(({ text }) => text),
  }
}
