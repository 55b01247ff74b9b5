/** Messages of chatapp, which come in signed batches. */
import { hmacSha256 } from '@sluice/sdk'
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { connect } from './connect.ts'
import { CHATAPP_SECRET } from './vectors.ts'

export async function crashKind(): Promise<CrashKind> {
  const { fake, section } = await connect()
  return {
    fake,
    section,
    senders: ['15550100001', '15550100002', '15550100003', '15550100004'],
    batchMax: 4,
    isPrivate: true,
    write: ({ mark }) => `wamid.${mark}`,
    request(messages) {
      const changes = messages.map(({ id, sender, text }) => ({
        field: 'messages',
        value: {
          messaging_product: 'whatsapp',
          metadata: { display_phone_number: '15550001111', phone_number_id: fake.phoneNumberId },
          contacts: [{ profile: { name: 'Ada' }, wa_id: sender }],
          messages: [{ from: sender, id, timestamp: String(Math.floor(Date.now() / 1000)), type: 'text', text: { body: text } }],
        },
      }))
      const body = JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: '1', changes }] })
      const signature = `sha256=${hmacSha256(CHATAPP_SECRET, body).toString('hex')}`
      return { path: '/chatapp', headers: { 'content-type': 'application/json', 'x-hub-signature-256': signature }, body }
    },
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
