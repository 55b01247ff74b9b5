/** Messages of bizchat, whose requests carry a secret in the URL. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { startBizchatFake } from './fake.ts'
import { BIZCHAT_SECRET, sectionOf } from './section.ts'

const ACCOUNT = '15550001111'
const SENDERS = ['15550300001', '15550300002', '15550300003', '15550300004'] as const

export async function crashKind(): Promise<CrashKind> {
  const fake = await startBizchatFake({ conversations: Object.fromEntries(SENDERS.map((sender) => [sender, [ACCOUNT]])) })
  return {
    fake,
    section: sectionOf(fake),
    senders: SENDERS,
    isPrivate: true,
    write: ({ mark }) => `wamid.${mark}`,
    request([{ id, sender, mark, text }]) {
      const body = JSON.stringify({
        id: `event-${mark}`,
        whatsappMessageId: id,
        conversationId: 'c1',
        text,
        type: 'text',
        data: null,
        timestamp: String(Math.floor(Date.now() / 1000)),
        owner: false,
        eventType: 'message',
        statusString: 'SENT',
        waId: sender,
        senderName: 'Ada',
        channelPhoneNumber: ACCOUNT,
      })
      return { path: `/bizchat?token=${BIZCHAT_SECRET}`, headers: { 'content-type': 'application/json' }, body }
    },
    files: () => fake.sent.flatMap(({ file }) => (file ? [{ name: file.name, size: file.bytes.length }] : [])),
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
