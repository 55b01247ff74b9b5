/**
 * A receiver of replies on loopback. It verifies signatures by the page of Standard Webhooks (github.com/standard-webhooks/standard-webhooks,
 * spec/standard-webhooks.md) and refuses what is not signed or has another shape.
 */
import { createHmac } from 'node:crypto'
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import * as v from 'valibot'

/** The Authorization header that every reply must carry. */
export const WEBHOOK_AUTHORIZATION = 'Bearer webhook-token-01'
/** The secret that signs messages and replies. */
export const WEBHOOK_SECRET = 'whsec_d2ViaG9vay1zaWduaW5nLWtleS0wMQ=='
/** A secret that is not for Standard Webhooks; it signs the body alone. */
export const WEBHOOK_PLAIN_SECRET = 'a plain webhook secret'

const fileSchema = v.strictObject({
  kind: v.picklist(['image', 'audio', 'video', 'file']),
  name: v.string(),
  mime: v.optional(v.string()),
  data: v.pipe(v.string(), v.base64()),
})
const replySchema = v.strictObject({
  id: v.pipe(v.string(), v.minLength(1)),
  recipient: v.string(),
  thread_id: v.optional(v.string()),
  in_reply_to: v.optional(v.string()),
  content: v.string(),
  attachments: v.optional(v.array(fileSchema)),
})

/** A reply that the receiver accepted. */
export type WebhookReply = v.InferOutput<typeof replySchema>

export interface WebhookFake extends FakeProvider {
  readonly sent: readonly WebhookReply[]
}

export async function startWebhookFake(): Promise<WebhookFake> {
  const sent: WebhookReply[] = []

  function answer(request: ProviderRequest): ProviderReply {
    const { method, path, headers, json } = request
    if (method !== 'POST' || path !== '/replies') return refusal(404, 'not found')
    if (headers.get('authorization') !== WEBHOOK_AUTHORIZATION) return refusal(401, 'invalid authorization')
    if (!isSigned(request)) return refusal(401, 'invalid signature')
    const reply = v.safeParse(replySchema, json)
    if (!reply.success) return refusal(400, reply.issues[0].message)
    if (reply.output.id !== headers.get('webhook-id')) return refusal(400, 'the ids differ')
    sent.push(reply.output)
    return { status: 200, body: { id: `reply-${sent.length}` } }
  }

  return { ...(await startFakeProvider(answer)), sent }
}

function isSigned({ headers, body }: ProviderRequest): boolean {
  const plain = `sha256=${createHmac('sha256', WEBHOOK_PLAIN_SECRET).update(body).digest('hex')}`
  if (headers.get('x-webhook-signature') === plain) return true
  const [id, time, signature] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => headers.get(name) ?? '')
  const key = Buffer.from(WEBHOOK_SECRET.replace('whsec_', ''), 'base64')
  const expected = createHmac('sha256', key).update(`${id}.${time}.`).update(body).digest('base64')
  return signature?.split(' ').includes(`v1,${expected}`) === true
}

const refusal = (status: number, error: string): ProviderReply => ({ status, body: { error } })
