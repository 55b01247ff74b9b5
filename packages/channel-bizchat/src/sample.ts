/** A request as the provider sends it, for operators who try their set-up without it. */
import type { Sample, SampleRequest } from '@sluice/sdk'
import { normaliseSender, recipientOf } from './sender.ts'

/** With the secret in the URL, where the provider has it from. */
export function sampleRequest({ id, sender, text, atMs, ignored }: Sample, secret: string): SampleRequest {
  const body = {
    id,
    created: new Date(atMs).toISOString(),
    whatsappMessageId: id,
    conversationId: 'sample-conversation',
    ticketId: 'sample-ticket',
    text,
    type: 'text',
    data: null,
    timestamp: String(Math.floor(atMs / 1000)),
    owner: ignored === true,
    eventType: ignored ? 'sessionMessageSent' : 'message',
    statusString: 'SENT',
    waId: recipientOf(normaliseSender(sender)),
    senderName: 'Sample',
  }
  const headers = { 'content-type': 'application/json' }
  return { headers, ...(secret === '' ? {} : { query: { token: secret } }), body: JSON.stringify(body) }
}
