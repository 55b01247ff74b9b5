/** Messages of textrelay: signed with a timestamp, and the only platform that drops repeated replies. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { startTextrelayFake, TEXTRELAY_PHONE, textrelaySignatures } from './fake.ts'
import { sectionOf } from './section.ts'

const SECRET = `whsec_${Buffer.from('textrelay-signing-key-01').toString('base64')}`
const SENDERS = ['+15550200001', '+15550200002', '+15550200003', '+15550200004'] as const

export async function crashKind(): Promise<CrashKind> {
  const chatOf = (sender: string): string => `chat-${sender.slice(-1)}`
  const fake = await startTextrelayFake({ chats: Object.fromEntries(SENDERS.map((sender) => [chatOf(sender), sender])) })
  return {
    fake,
    section: { ...sectionOf(fake), from_phone: TEXTRELAY_PHONE, signing_secret: SECRET },
    senders: SENDERS,
    isPrivate: true,
    dropsRepeats: true,
    write: ({ mark }) => `event-${mark}`,
    request([{ id, sender, mark, text }]) {
      const body = JSON.stringify({
        api_version: 'v3',
        webhook_version: '2026-02-03',
        event_type: 'message.received',
        event_id: id,
        data: {
          id: `message-${mark}`,
          direction: 'inbound',
          chat: { id: chatOf(sender), is_group: false, owner_handle: { handle: TEXTRELAY_PHONE, is_me: true } },
          sender_handle: { handle: sender, is_me: false },
          parts: [{ type: 'text', value: text }],
        },
      })
      const headers = { 'content-type': 'application/json', ...textrelaySignatures(body, { secret: SECRET, id, atMs: Date.now() }) }
      return { path: '/textrelay', headers, body }
    },
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
