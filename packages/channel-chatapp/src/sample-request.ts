/** A request as the provider would send it, signed with our own secret, so that a set-up is tried without the provider. */
import { hmacSha256, type Sample, type SampleRequest, type Secret } from '@sluice/sdk'
import { normaliseSender } from './sender.ts'
import { isConfigured, SIGNATURE_HEADER, SIGNATURE_PREFIX } from './verify.ts'

export function sampleRequest(
  sample: Sample,
  { account, secret }: { readonly account: string; readonly secret: Secret | undefined },
): SampleRequest {
  const value = { messaging_product: 'whatsapp', metadata: { phone_number_id: account }, ...eventOf(sample) }
  const payload = { object: 'whatsapp_business_account', entry: [{ id: '100000000000000', changes: [{ value, field: 'messages' }] }] }
  const body = escaped(JSON.stringify(payload))
  const headers = { 'content-type': 'application/json' }
  if (!isConfigured(secret)) return { headers, body }
  const signature = SIGNATURE_PREFIX + hmacSha256(secret.reveal().trim(), body).toString('hex')
  return { headers: { ...headers, [SIGNATURE_HEADER]: signature }, body }
}

/** A text, or the news that one of ours was delivered. */
function eventOf({ sender, text, id, atMs, ignored }: Sample): object {
  const timestamp = String(Math.floor(atMs / 1000))
  const user = normaliseSender(sender)
  const number = user.startsWith('+') ? user.slice(1) : undefined
  if (ignored) return { statuses: [{ id, status: 'delivered', timestamp, recipient_id: number ?? user }] }
  const from = number === undefined ? { from_user_id: user } : { from: number }
  return {
    contacts: [number === undefined ? { user_id: user } : { wa_id: number }],
    messages: [{ ...from, id, timestamp, type: 'text', text: { body: text } }],
  }
}

/** The provider sends ASCII alone, and signs it so. */
const escaped = (json: string): string =>
  json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
