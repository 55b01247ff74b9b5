/** Mails of four people. The mailbox keeps them, so that a daemon reads what it has missed. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { textIn } from './fake.ts'
import { connect } from './section.ts'

export async function crashKind(): Promise<CrashKind> {
  const { fake, section } = await connect()
  return {
    fake,
    section,
    senders: ['ada@example.com', 'bob@example.com', 'cleo@example.com', 'dan@example.com'],
    isPulled: true,
    isPrivate: true,
    isReady: () => fake.selected > 0,
    write: ({ sender, text }, after) =>
      fake.write({ from: sender, text, ...(after && { headers: [`In-Reply-To: ${after.id}`, `References: ${after.id}`] }) }),
    textIn: ({ body }) => textIn(body),
    delivered: () => fake.accepted.map(({ raw }) => textIn(raw)),
  }
}
