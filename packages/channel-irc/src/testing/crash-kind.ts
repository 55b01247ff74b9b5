/** Direct messages of irc. The server keeps a history, from which a daemon reads what it has missed. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { connect } from './section.ts'

const GROUP = '#ops'

export async function crashKind(): Promise<CrashKind> {
  const { fake, section } = await connect()
  return {
    fake,
    section: { ...section, channels: [GROUP] },
    senders: ['ada', 'bob', 'cleo', 'dan'],
    entries: ['account:ada', 'account:bob', 'account:cleo', 'account:dan'],
    isPulled: true,
    isPrivate: true,
    isReady: () => fake.registered > 0,
    write: ({ sender, text }) => fake.say({ text, from: sender, to: 'sluice' }),
    mention: ({ sender, text }) => ({ id: fake.say({ text: `sluice: ${text}`, from: sender, to: GROUP }) }),
    remove({ id, sender: from }, { mark }) {
      fake.remove({ id, from, to: 'sluice' })
      return { id: mark }
    },
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
