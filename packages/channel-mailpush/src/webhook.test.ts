import { readFileSync } from 'node:fs'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { buildChannel } from './testing/bench.ts'
import { parse } from './webhook.ts'

const bytes = (body: string) => new TextEncoder().encode(body)
const fixture = (name: string) => bytes(JSON.parse(readFileSync(new URL(`../fixtures/${name}.json`, import.meta.url), 'utf8')).body)
const envelope = (data: string) => bytes(JSON.stringify({ message: { data, messageId: '7' } }))
const encode = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64')

test('parse accepts a history id as a number', () => {
  expect(parse({ body: fixture('push') })).toEqual({ id: '700000000000001', notice: { mailbox: 'bot@example.com', historyId: 9_876_543n } })
})

test('parse accepts a text id, URL base64, message_id and any script', () => {
  expect(parse({ body: fixture('push-url-safe') })).toEqual({
    id: '700000000000002',
    notice: { mailbox: 'böt+x@ex.org', historyId: 9_876_544n },
  })
})

test('parse keeps all 64 bits of a history id', () => {
  const data = encode({ emailAddress: 'Bot@example.com', historyId: '18446744073709551615' })
  expect(parse({ body: envelope(data) }).notice).toEqual({ mailbox: 'bot@example.com', historyId: 2n ** 64n - 1n })
})

test.each([
  '{}',
  '{"message":{"data":"%%%"}}',
  '{"message":{"data":"A"}}',
  '{"message":{"data":7}}',
  '{"message":[]}',
  '{"message":null}',
  '{"message":{"data":null}}',
  'not JSON',
  '',
  'null',
  '[]',
])('parse rejects %j', (body) => {
  expect(() => parse({ body: bytes(body) })).toThrow(
    expect.objectContaining({ code: 'invalid_request', message: 'Invalid Pub/Sub envelope' }),
  )
})

test('parse rejects bytes that are not UTF-8', () => {
  expect(() => parse({ body: Uint8Array.of(0x22, 0xff, 0x22) })).toThrow(expect.objectContaining({ code: 'invalid_request' }))
})

test.each([
  '',
  'hello',
  '{"emailAddress":"a@b.c"}',
  '{"historyId":1}',
  { emailAddress: '', historyId: 1 },
  { emailAddress: 'a@b.c', historyId: -1 },
  { emailAddress: 'a@b.c', historyId: 1.5 },
  { emailAddress: 'a@b.c', historyId: '0x10' },
  { emailAddress: 'a@b.c', historyId: '123456789012345678901' },
  [],
])('drops and logs a push with the data %j', async (data) => {
  expect(parse({ body: envelope(encode(data)) })).toEqual({ id: '7' })
  const host = testHost()
  const request = { headers: {}, url: new URL('http://localhost/'), body: envelope(encode(data)), receivedAtMs: 0 }
  expect(await buildChannel(host, {}).webhook?.parse(request)).toEqual([])
  expect(host.logs).toMatchObject([{ level: 'warn', fields: { push: '7' } }])
})

test.each([
  '{"message":{"messageId":"7"}}',
  '{"message":{"data":"","messageId":"7"}}',
  '{"message":{"attributes":{"a":"b"},"message_id":"7"},"subscription":"projects/p/subscriptions/s"}',
])('drops and logs a push without data: %j', async (body) => {
  expect(parse({ body: bytes(body) })).toEqual({ id: '7' })
  const host = testHost()
  const request = { headers: {}, url: new URL('http://localhost/'), body: bytes(body), receivedAtMs: 0 }
  expect(await buildChannel(host, {}).webhook?.parse(request)).toEqual([])
  expect(host.logs).toMatchObject([{ level: 'warn', fields: { push: '7' } }])
})

test('a sample is a push with a notice, an ignored one has no notice', async () => {
  const { webhook } = buildChannel(testHost(), { webhook_secret: 'mailpush-secret-01' })
  const sample = { sender: 'ada@example.com', text: 'hello', id: 'sample-1', atMs: 1_767_225_600_000 }
  const made = webhook?.sample(sample)
  expect(made?.headers.authorization).toBe('Bearer mailpush-secret-01')
  expect(parse({ body: bytes(made?.body ?? '') })).toEqual({
    id: 'sample-1',
    notice: { mailbox: 'ada@example.com', historyId: 1_767_225_600_000n },
  })
  expect(parse({ body: bytes(webhook?.sample({ ...sample, ignored: true }).body ?? '') })).toEqual({ id: 'sample-1' })
})

test('a sample is marked when only the push service could sign it', () => {
  const webhook_url = 'https://gw.example/webhook/mailpush'
  const sample = { sender: 'ada@example.com', text: 'hello', id: 'sample-1', atMs: 1_767_225_600_000 }
  const sampleOf = (proof: object) => {
    const { webhook } = buildChannel(testHost(), { webhook_url, ...proof })
    expect(webhook?.registered).toBe('https://gw.example/webhook/mailpush')
    return webhook?.sample(sample)
  }
  expect(sampleOf({ service_account: 'push@p.example' })?.unverifiable).toBe(true)
  expect(sampleOf({ service_account: 'push@p.example', webhook_secret: 's' })?.unverifiable).toBeUndefined()
  expect(sampleOf({})?.unverifiable).toBeUndefined()
})
