/** Direct messages of signal: signal-cli repeats those that it wrote to a connection of a daemon that was killed. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { uuidOf } from './fake.ts'
import { connect } from './section.ts'

const SENDERS = ['+15550300001', '+15550300002', '+15550300003', '+15550300004'] as const

export async function crashKind(): Promise<CrashKind> {
  const { fake, section } = await connect(Date.now)
  return {
    fake,
    section,
    senders: SENDERS,
    isPulled: true,
    isPrivate: true,
    isReady: () => fake.listeners > 0,
    write: ({ sender, text }) => `${uuidOf(sender)}/${fake.say({ from: sender, text })}`,
    delivered: () => fake.sent.map(({ message }) => message),
  }
}
