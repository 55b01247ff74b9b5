/** Messages of workchat: direct conversations over a long connection, with their histories. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { startWorkchatFake, textIn } from './fake.ts'
import { socketSection } from './section.ts'

const SENDERS = ['ou_ada', 'ou_bob', 'ou_cleo', 'ou_dan'] as const
const chatOf = (sender: string): string => sender.replace('ou_', 'oc_')
/** The platform is patient, so that a message is not lost while the daemon is down for long. */
const AGAIN_MS = new Array<number>(10_000).fill(500)

export async function crashKind(): Promise<CrashKind> {
  const chats = Object.fromEntries(SENDERS.map((sender) => [chatOf(sender), 'p2p']))
  const fake = await startWorkchatFake({ chats, nowMs: Date.now, ackMs: 3000, againMs: AGAIN_MS })
  return {
    fake,
    section: socketSection(fake),
    senders: SENDERS,
    isPulled: true,
    write: ({ sender, text }) => fake.say({ user: sender, chat: chatOf(sender), text }),
    edit({ id, sender: author }, { mark, sender, text }) {
      // The server refuses the edit of a message by another person.
      if (sender === author) fake.edit(id, text)
      return { id: mark }
    },
    remove({ id }, { mark }) {
      fake.recall(id)
      return { id: mark }
    },
    textIn: ({ body }) => contentIn(body),
    delivered: () => fake.sent().map(textIn),
  }
}

/** Returns the content of the message in a request, with the escapes of its text; empty for another request. */
function contentIn(body: Buffer): string {
  try {
    return String((JSON.parse(body.toString()) as { content?: unknown }).content ?? '')
  } catch {
    return ''
  }
}
