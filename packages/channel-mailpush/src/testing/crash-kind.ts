/** Mails of mailpush: the mailbox keeps them, and a push announces them. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { startMailpushFake } from './fake.ts'
import { readSentMail } from './fake-sent.ts'
import { MAILPUSH_SECRET, sectionOf } from './section.ts'

export async function crashKind(): Promise<CrashKind> {
  const fake = await startMailpushFake()
  return {
    fake,
    section: sectionOf(fake),
    senders: ['ada@example.com', 'bob@example.com', 'cleo@example.com', 'dan@example.com'],
    isPulled: true,
    isReady: () => fake.watches.length > 0,
    write: ({ sender, text }) => fake.receive({ from: sender, subject: 'Chaos', text, threadId: `thread of ${sender}` }).id,
    request: () => ({
      path: '/webhook/mailpush',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${MAILPUSH_SECRET}` },
      body: fake.push(),
    }),
    textIn({ path, json }) {
      const { raw } = (json ?? {}) as { readonly raw?: unknown }
      const mail = path.endsWith('/messages/send') && typeof raw === 'string' ? readSentMail(raw, undefined) : ''
      return typeof mail === 'string' ? mail : mail.text
    },
    files: () => fake.sent.flatMap(({ files }) => files.map(({ name, bytes }) => ({ name, size: bytes.length }))),
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
