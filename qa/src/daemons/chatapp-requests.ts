/** Makes requests to the webhook of chatapp, as the platform signs and sends them. */
import { chatappRequest as signedRequest } from '@sluice/channel-chatapp/testing'

export const CHATAPP_PERSON = '15550002222'

/** `id` is the platform's id of the message, by which repeats are recognised. */
export function chatappRequest({
  id,
  text,
  from = CHATAPP_PERSON,
}: {
  readonly id: string
  readonly text: string
  readonly from?: string
}) {
  const message = { from, id, timestamp: '1767225600', type: 'text', text: { body: text } }
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '15550001111', phone_number_id: '200000000000002' },
    contacts: [{ profile: { name: 'Ada' }, wa_id: from }],
    messages: [message],
  }
  const body = { object: 'whatsapp_business_account', entry: [{ id: '100000000000001', changes: [{ field: 'messages', value }] }] }
  return signedRequest(Buffer.from(JSON.stringify(body)))
}
