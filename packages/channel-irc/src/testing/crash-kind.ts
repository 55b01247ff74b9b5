/** Direct messages of irc. The server keeps a history, from which a daemon reads what it has missed. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { connect } from './section.ts'

export async function crashKind(): Promise<CrashKind> {
  const { fake, section } = await connect()
  return {
    fake,
    section: { ...section, channels: [] },
    senders: ['ada', 'bob', 'cleo', 'dan'],
    isPulled: true,
    isPrivate: true,
    isReady: () => fake.registered > 0,
    write: ({ sender, text }) => fake.say({ text, from: sender, to: 'sluice' }),
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
