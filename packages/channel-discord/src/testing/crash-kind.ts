/** Messages of discord: several senders share a conversation, and its history has what was written without a connection. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { DISCORD_BOT, DISCORD_CHANNEL, DISCORD_TOKEN, startDiscordFake } from './fake.ts'

const SENDERS = ['400000000000000011', '400000000000000012', '400000000000000013', '400000000000000014'] as const

export async function crashKind(): Promise<CrashKind> {
  const fake = await startDiscordFake()
  return {
    fake,
    section: { bot_token: DISCORD_TOKEN, allowed_users: ['*'], api_url: fake.apiUrl },
    senders: SENDERS,
    isPulled: true,
    isReady: () => fake.happened.includes('identify'),
    write: ({ sender, text }) => fake.say({ author: sender, channel: DISCORD_CHANNEL, text }),
    mention: ({ sender, text }) => ({ id: fake.say({ author: sender, channel: DISCORD_CHANNEL, text: `<@${DISCORD_BOT}> ${text}` }) }),
    edit({ id }, { mark, sender, text }) {
      fake.edit(id, { author: sender, text })
      return { id: mark }
    },
    remove({ id }, { mark }) {
      fake.remove(id)
      return { id: mark }
    },
    files: () => fake.sent.flatMap(({ attachments }) => attachments.map(({ filename, size }) => ({ name: filename, size }))),
    delivered: () => fake.sent.map(({ content }) => content),
  }
}
