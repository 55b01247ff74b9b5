/** Messages of bizchat, whose requests carry a secret in the URL. */
import { BIZCHAT_TOKEN, startBizchatFake } from '@sluice/channel-bizchat/testing'
import type { Kind } from '../kind.ts'
import { textOf } from '../marks.ts'

const SECRET = 'bizchat-webhook-secret-01'
const ACCOUNT = '15550001111'
const SENDERS = ['15550300001', '15550300002', '15550300003', '15550300004'] as const

export async function bizchatKind(): Promise<Kind> {
  const fake = await startBizchatFake({ conversations: Object.fromEntries(SENDERS.map((sender) => [sender, [ACCOUNT]])) })
  return {
    name: 'bizchat',
    config: `[channels_config.bizchat]
api_token = "${BIZCHAT_TOKEN}"
api_url = "${fake.url}"
webhook_secret = "${SECRET}"
allowed_numbers = ["*"]`,
    senders: SENDERS,
    batchMax: 1,
    isPulled: false,
    isPrivate: true,
    write: (draft) => ({ ...draft, kind: 'bizchat', id: `wamid.${draft.mark}` }),
    request([message]) {
      if (!message) throw new Error('A request of this kind carries one message; got none.')
      const { id, sender, mark } = message
      const body = JSON.stringify({
        id: `event-${mark}`,
        whatsappMessageId: id,
        conversationId: 'c1',
        text: textOf(message),
        type: 'text',
        data: null,
        timestamp: '1767225600',
        owner: false,
        eventType: 'message',
        statusString: 'SENT',
        waId: sender,
        senderName: 'Ada',
        channelPhoneNumber: ACCOUNT,
      })
      return { path: `/bizchat?token=${SECRET}`, headers: { 'content-type': 'application/json' }, body }
    },
    provider: fake,
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
