/** Messages of chatapp, which come in signed batches. */
import { hmacSha256 } from '@sluice/sdk'
import type { CrashKind, PostedRequest } from '@sluice/testkit/crash-kind'
import { connect } from './connect.ts'
import { CHATAPP_SECRET } from './vectors.ts'

export async function crashKind(): Promise<CrashKind> {
  const { fake, section } = await connect()
  const requestOf = (messages: readonly { readonly from: string; readonly [member: string]: unknown }[]): PostedRequest => {
    const changes = messages.map((message) => ({
      field: 'messages',
      value: {
        messaging_product: 'whatsapp',
        metadata: { display_phone_number: '15550001111', phone_number_id: fake.phoneNumberId },
        contacts: [{ profile: { name: 'Ada' }, wa_id: message.from }],
        messages: [{ timestamp: String(Math.floor(Date.now() / 1000)), ...message }],
      },
    }))
    const body = JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: '1', changes }] })
    const signature = `sha256=${hmacSha256(CHATAPP_SECRET, body).toString('hex')}`
    return { path: '/chatapp', headers: { 'content-type': 'application/json', 'x-hub-signature-256': signature }, body }
  }
  return {
    fake,
    section,
    senders: ['15550100001', '15550100002', '15550100003', '15550100004'],
    batchMax: 4,
    isPrivate: true,
    write: ({ mark }) => `wamid.${mark}`,
    request: (messages) => requestOf(messages.map(({ id, sender, text }) => ({ from: sender, id, type: 'text', text: { body: text } }))),
    edit: ({ id }, { mark, sender, text }) => {
      const edit = { original_message_id: id, message: { type: 'text', text: { body: text } } }
      return { id: `wamid.${mark}`, request: requestOf([{ from: sender, id: `wamid.${mark}`, type: 'edit', edit }]) }
    },
    remove: ({ id }, { mark, sender }) => ({
      id: `wamid.${mark}`,
      request: requestOf([{ from: sender, id: `wamid.${mark}`, type: 'revoke', revoke: { original_message_id: id } }]),
    }),
    files: () => fake.sent.flatMap(({ file }) => (file ? [{ name: file.name, size: file.bytes.length }] : [])),
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
