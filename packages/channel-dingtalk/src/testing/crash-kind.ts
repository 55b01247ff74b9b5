/** Messages of dingtalk: each sender writes in a direct conversation, and the platform repeats what was not acknowledged. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { connect } from './section.ts'

const SENDERS = ['ada', 'bob', 'cleo', 'dan'] as const
const DAY_MS = 86_400_000

export async function crashKind(): Promise<CrashKind> {
  const { fake, section } = await connect({ keepMs: DAY_MS })
  return {
    fake,
    section,
    senders: SENDERS,
    isPulled: true,
    isPrivate: true,
    write: ({ sender, text }) => fake.say({ sender, text }),
    textIn: ({ json }) => textIn(json),
    delivered: () => fake.sent.map(({ text }) => text),
  }
}

/** A reply has its text as markdown; the title repeats its beginning. */
function textIn(json: unknown): string {
  const { markdown, msgParam } = (json ?? {}) as { markdown?: { text?: string }; msgParam?: string }
  if (msgParam !== undefined) return (JSON.parse(msgParam) as { text?: string }).text ?? ''
  return markdown?.text ?? ''
}
