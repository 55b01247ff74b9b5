/** Messages of qq: each sender writes in a direct conversation, and the gateway repeats what a resumed session has not taken. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { connect } from './section.ts'

const SENDERS = ['ADA', 'BOB', 'CLEO', 'DAN'] as const
const DAY_MS = 86_400_000

export async function crashKind(): Promise<CrashKind> {
  const { fake, section } = await connect({ keepMs: DAY_MS })
  return {
    fake,
    section,
    senders: SENDERS,
    isPulled: true,
    isPrivate: true,
    isReady: () => fake.gateway.identified > 0,
    write: ({ sender, text }) => fake.say({ sender, text }),
    textIn: ({ json }) => ((json ?? {}) as { content?: string }).content ?? '',
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
