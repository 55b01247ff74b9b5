/** A request as the provider sends it, for operators who try their set-up without it. */
import { hmacSha256, type Sample, type SampleRequest } from '@sluice/sdk'
import { standardKey } from './verify.ts'

const NO_ID = '00000000-0000-4000-8000-000000000000'

/** Signed in every way the secret allows; not at all without one. */
export function sampleRequest(
  sample: Sample,
  { fromPhone, secret }: { readonly fromPhone: string; readonly secret: string },
): SampleRequest {
  const eventType = sample.ignored ? 'message.delivered' : 'message.received'
  const body = JSON.stringify({
    api_version: 'v3',
    webhook_version: '2026-02-03',
    event_type: eventType,
    event_id: sample.id,
    created_at: new Date(sample.atMs).toISOString(),
    data: {
      id: sample.id,
      direction: sample.ignored ? 'outbound' : 'inbound',
      chat: { id: sample.to ?? NO_ID, is_group: false, owner_handle: { handle: fromPhone, is_me: true } },
      sender_handle: { handle: sample.ignored ? fromPhone : sample.sender, is_me: sample.ignored === true },
      parts: [{ type: 'text', value: sample.text }],
    },
  })
  const headers = { 'content-type': 'application/json', 'x-webhook-event': eventType, 'x-webhook-subscription-id': NO_ID }
  return { headers: { ...headers, ...signatures(sample, body, secret) }, body }
}

function signatures({ id, atMs }: Sample, body: string, secret: string): Record<string, string> {
  if (secret === '') return {}
  const time = String(Math.floor(atMs / 1000))
  const key = standardKey(secret)
  return {
    'x-webhook-timestamp': time,
    'x-webhook-signature': hmacSha256(secret, time, '.', body).toString('hex'),
    ...(key && {
      'webhook-id': id,
      'webhook-timestamp': time,
      'webhook-signature': `v1,${hmacSha256(key, id, '.', time, '.', body).toString('base64')}`,
    }),
  }
}
