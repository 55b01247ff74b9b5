/** Mails of four people. The mailbox keeps them, so that a daemon reads what it has missed. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { textIn } from './fake.ts'
import { connect } from './section.ts'

export async function crashKind(): Promise<CrashKind> {
  // The crash runs end before the minutes that a mail waits after a limit.
  const { fake, section } = await connect({ limitAnswer: '451 4.3.2 Not now' })
  return {
    fake,
    section,
    senders: ['ada@example.com', 'bob@example.com', 'cleo@example.com', 'dan@example.com'],
    isPulled: true,
    isPrivate: true,
    isReady: () => fake.selected > 0,
    // All mails of a person are in one thread, so that they run in order.
    write: ({ sender, text }, after) =>
      fake.write({ from: sender, text, headers: [`References: <first.${sender}>`, ...(after ? [`In-Reply-To: ${after.id}`] : [])] }),
    textIn: ({ body }) => textIn(body),
    delivered: () => fake.accepted.map(({ raw }) => textIn(raw)),
  }
}
