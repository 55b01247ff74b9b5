/** Messages of textrelay: signed with a timestamp, and the only platform that drops repeated replies. */
import { startTextrelayFake, TEXTRELAY_PHONE, TEXTRELAY_TOKEN, textrelaySignatures } from '@sluice/channel-textrelay/testing'
import type { Kind } from '../kind.ts'
import { textOf } from '../marks.ts'

const SECRET = `whsec_${Buffer.from('textrelay-signing-key-01').toString('base64')}`
const SENDERS = ['+15550200001', '+15550200002', '+15550200003', '+15550200004'] as const

export async function textrelayKind(): Promise<Kind> {
  const chatOf = (sender: string): string => `chat-${sender.slice(-1)}`
  const fake = await startTextrelayFake({ chats: Object.fromEntries(SENDERS.map((sender) => [chatOf(sender), sender])) })
  return {
    name: 'textrelay',
    config: `[channels_config.textrelay]
api_token = "${TEXTRELAY_TOKEN}"
from_phone = "${TEXTRELAY_PHONE}"
signing_secret = "${SECRET}"
allowed_senders = ["*"]
api_url = "${fake.apiUrl}"`,
    senders: SENDERS,
    batchMax: 1,
    isPulled: false,
    isPrivate: true,
    write: (draft) => ({ ...draft, kind: 'textrelay', id: `event-${draft.mark}` }),
    request([message]) {
      if (!message) throw new Error('A request of this kind carries one message; got none.')
      const { id, sender, mark } = message
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
          parts: [{ type: 'text', value: textOf(message) }],
        },
      })
      const headers = { 'content-type': 'application/json', ...textrelaySignatures(body, { secret: SECRET, id, atMs: Date.now() }) }
      return { path: '/textrelay', headers, body }
    },
    provider: fake,
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
