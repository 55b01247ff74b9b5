/** The channel against a receiver of its replies. */

import type { Channel } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { webhookSection } from './config.ts'
import feature from './index.ts'
import { testing, WEBHOOK_PLAIN_SECRET, WEBHOOK_SECRET, type WebhookFake } from './testing/index.ts'
import { verify } from './webhook.ts'

const { signal } = new AbortController()
let fake: WebhookFake
let section: Readonly<Record<string, unknown>>
beforeEach(async () => ({ fake, section } = await testing.connect(() => 0)))
afterEach(() => fake.close())

function channel(changes: object = {}): Channel {
  const [built] = feature.build(testHost({ fetch }), v.parse(webhookSection.schema, { ...section, ...changes })).channels ?? []
  if (!built) throw new Error('The section of the fake builds no channel.')
  return built
}

test('sends a signed reply with its thread, the message that it answers, and files', async () => {
  const attachments = [{ kind: 'file', name: 'a.txt', mime: 'text/plain', source: { bytes: Buffer.from('hi') } }] as const
  const to = { to: 'ada', thread: 't-1', replyTo: 'm-1' }
  expect(await channel().send(to, { text: 'hello', attachments, clientId: 'c-1' }, signal)).toEqual({ id: 'reply-1' })
  const sentFiles = [{ kind: 'file', name: 'a.txt', mime: 'text/plain', data: 'aGk=' }]
  const reply = { id: 'c-1', recipient: 'ada', thread_id: 't-1', in_reply_to: 'm-1', content: 'hello', attachments: sentFiles }
  expect(fake.sent).toEqual([reply])
  expect(fake.requests[0]?.headers.get('idempotency-key')).toBe('c-1')
})

test('the library of Standard Webhooks verifies replies, and signs messages that verify', async () => {
  const library = new StandardWebhook(WEBHOOK_SECRET)
  const host = testHost({ fetch, clock: testClock(Date.now()) })
  const [real] = feature.build(host, v.parse(webhookSection.schema, section)).channels ?? []
  await real?.send({ to: 'ada' }, { text: 'hello', clientId: 'c-1' }, signal)
  const [request] = fake.requests
  const headers = Object.fromEntries(request?.headers ?? [])
  expect(library.verify(request?.body ?? '', headers)).toMatchObject({ id: 'c-1', content: 'hello' })

  const now = new Date()
  const body = '{"id":"m-1","sender":"ada","content":"hello"}'
  const signature = library.sign('m-1', now, body)
  const time = String(Math.floor(now.getTime() / 1000))
  const raw = { headers: { 'webhook-id': 'm-1', 'webhook-timestamp': time, 'webhook-signature': signature }, body: Buffer.from(body) }
  expect(verify({ ...raw, receivedAtMs: now.getTime() }, { secret: WEBHOOK_SECRET })).toEqual({ by: 'webhook-signature' })
})

test('signs with a plain secret as messages are signed', async () => {
  await channel({ secret: WEBHOOK_PLAIN_SECRET }).send({ to: 'ada' }, { text: 'hello', clientId: 'c-1' }, signal)
  expect(fake.sent).toHaveLength(1)
})

test('reports why the receiver refused a reply', async () => {
  const sending = channel({ auth_header: 'Bearer wrong' }).send({ to: 'ada' }, { text: 'hello', clientId: 'c-1' }, signal)
  await expect(sending).rejects.toThrow('invalid authorization')
})

test('repeats an uncertain reply only for a receiver that drops repeats', () => {
  expect(channel().limits.dedupesClientIds).toBeUndefined()
  expect(channel({ receiver_deduplicates: true }).limits.dedupesClientIds).toBe(true)
})

describe('the section', () => {
  test.each([
    ['without send_url', { send_url: undefined }],
    ['with a password in send_url', { send_url: 'https://me:secret@receiver.example/' }],
    ['with another method', { send_method: 'GET' }],
  ])('is refused %s', (_, changes) => {
    expect(v.safeParse(webhookSection.schema, { ...section, ...changes }).success).toBe(false)
  })

  test('is refused with a secret that Standard Webhooks cannot read', async () => {
    const value = v.parse(webhookSection.schema, { ...section, secret: 'whsec_short' })
    expect((await webhookSection.refine(value)).problems).toMatchObject([{ path: ['secret'] }])
  })
})
