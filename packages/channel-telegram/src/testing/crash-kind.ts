/** Messages of telegram: each sender writes in a private chat, and the platform keeps updates until a later poll confirms them. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { startTelegramFake, TELEGRAM_GROUP, TELEGRAM_TOKEN } from './fake.ts'

const SENDERS = ['2001', '2002', '2003', '2004'] as const

export async function crashKind(): Promise<CrashKind> {
  const fake = await startTelegramFake({ chats: [{ id: TELEGRAM_GROUP, type: 'group' }] })
  return {
    fake,
    section: { bot_token: TELEGRAM_TOKEN, allowed_users: ['*'], api_url: fake.url },
    senders: SENDERS,
    isPulled: true,
    write({ sender, text }) {
      const { chat, id } = fake.say({ from: { id: Number(sender) }, text })
      return `${chat}:${id}`
    },
    // Clients append the name of the bot to a command that is picked in a group; people also write the name in front.
    mention({ mark, sender, text }) {
      const name = `@${fake.bot.username}`
      const isAppended = text.startsWith('/s')
      const written = isAppended ? `${text}${name}` : `${name} ${text}`
      const entity = isAppended
        ? { type: 'bot_command', offset: 0, length: written.length }
        : { type: 'mention', offset: 0, length: name.length }
      const { chat, id } = fake.say({
        chat: TELEGRAM_GROUP,
        from: { id: Number(sender), username: mark },
        text: written,
        extra: { entities: [entity] },
      })
      return { id: `${chat}:${id}` }
    },
    edit({ id }, { mark, sender, text }) {
      const [chat, number] = id.split(':')
      fake.edit({ chat: Number(chat), id: Number(number) }, text, { id: Number(sender) })
      return { id: mark }
    },
    files: () => fake.sent().flatMap(({ file }) => (file ? [{ name: file.name, size: file.bytes.length }] : [])),
    delivered: () => fake.sent().map(({ text }) => text),
  }
}
