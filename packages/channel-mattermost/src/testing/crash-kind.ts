/** Messages of mattermost: each sender writes in a direct conversation, from which a daemon reads what it has missed. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { idOf } from './fake-posts.ts'
import { connect } from './section.ts'

const SENDERS = [11, 12, 13, 14].map((n) => idOf('u', n)) as [string, ...string[]]
const conversationOf = (sender: string): string => sender.replace('u', 'd')

export async function crashKind(): Promise<CrashKind> {
  const { fake, section } = await connect({ channels: Object.fromEntries(SENDERS.map((sender) => [conversationOf(sender), 'D'])) })
  return {
    fake,
    section,
    senders: SENDERS,
    isPulled: true,
    isReady: () => fake.sockets.opened > 0,
    write: ({ sender, text }) => fake.say({ text, from: sender, channel: conversationOf(sender) }),
    edit({ id, sender: author }, { mark, sender, text }) {
      // The server refuses the edit of a message by another person.
      if (sender === author) fake.edit(id, text)
      return { id: mark }
    },
    remove({ id }, { mark }) {
      fake.delete(id)
      return { id: mark }
    },
    delivered: () => fake.sent.map(({ message }) => message),
  }
}
