/** Messages of chatapp, which come in signed batches. */

import { startChatappFake } from '@sluice/channel-chatapp/testing'
import { hmacSha256 } from '@sluice/sdk'
import type { Kind } from '../kind.ts'
import { textOf } from '../marks.ts'

const SECRET = 'chatapp-app-secret-01'

export async function chatappKind(): Promise<Kind> {
  const fake = await startChatappFake()
  return {
    name: 'chatapp',
    config: `[channels_config.chatapp]
access_token = "${fake.accessToken}"
phone_number_id = "${fake.phoneNumberId}"
verify_token = "chatapp-verify-token"
app_secret = "${SECRET}"
allowed_numbers = ["*"]
api_url = "${fake.url}"`,
    senders: ['15550100001', '15550100002', '15550100003', '15550100004'],
    batchMax: 4,
    isPulled: false,
    isPrivate: true,
    write: (draft) => ({ ...draft, kind: 'chatapp', id: `wamid.${draft.mark}` }),
    request(messages) {
      const changes = messages.map(({ id, sender, ...message }) => ({
        field: 'messages',
        value: {
          messaging_product: 'whatsapp',
          metadata: { display_phone_number: '15550001111', phone_number_id: fake.phoneNumberId },
          contacts: [{ profile: { name: 'Ada' }, wa_id: sender }],
          messages: [{ from: sender, id, timestamp: '1767225600', type: 'text', text: { body: textOf(message) } }],
        },
      }))
      const body = JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: '1', changes }] })
      const signature = `sha256=${hmacSha256(SECRET, body).toString('hex')}`
      return { path: '/chatapp', headers: { 'content-type': 'application/json', 'x-hub-signature-256': signature }, body }
    },
    provider: fake,
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
