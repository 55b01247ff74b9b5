import { readFileSync } from 'node:fs'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { mailpushSection } from './config.ts'
import { createMailpush } from './mailpush.ts'
import { parsePush } from './parse-push.ts'

const bytes = (body: string) => new TextEncoder().encode(body)
const fixture = (name: string) => bytes(JSON.parse(readFileSync(new URL(`../fixtures/${name}.json`, import.meta.url), 'utf8')).body)
const envelope = (data: string) => bytes(JSON.stringify({ message: { data, messageId: '7' } }))
const encode = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64')

test('M1: the history id may be a number', () => {
  expect(parsePush(fixture('push'))).toEqual({ id: '700000000000001', notice: { mailbox: 'bot@example.com', historyId: 9_876_543n } })
})

test('M2: or a text; base64 for URLs, the older key of the id, and letters of any script are fine', () => {
  expect(parsePush(fixture('push-url-safe'))).toEqual({ id: '700000000000002', notice: { mailbox: 'böt+x@ex.org', historyId: 9_876_544n } })
})

test('a history id has all its 64 bits', () => {
  const data = encode({ emailAddress: 'Bot@example.com', historyId: '18446744073709551615' })
  expect(parsePush(envelope(data)).notice).toEqual({ mailbox: 'bot@example.com', historyId: 2n ** 64n - 1n })
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
])('M7: %j is no envelope', (body) => {
  expect(() => parsePush(bytes(body))).toThrow(expect.objectContaining({ code: 'invalid_request', message: 'Invalid Pub/Sub envelope' }))
})

test('M7: bytes that are not UTF-8 are no envelope', () => {
  expect(() => parsePush(Uint8Array.of(0x22, 0xff, 0x22))).toThrow(expect.objectContaining({ code: 'invalid_request' }))
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
])('M7: an envelope around %j is taken and dropped, with a line in the log', async (data) => {
  expect(parsePush(envelope(encode(data)))).toEqual({ id: '7' })
  const host = testHost()
  const section = v.parse(mailpushSection.schema, { enabled: true, topic: 'projects/p/topics/t' })
  const request = { headers: {}, url: new URL('http://localhost/'), body: envelope(encode(data)), receivedAtMs: 0 }
  expect(await createMailpush(host, section).webhook?.parse(request)).toEqual([])
  expect(host.logs).toMatchObject([{ level: 'warn', fields: { push: '7' } }])
})

test.each([
  '{"message":{"messageId":"7"}}',
  '{"message":{"data":"","messageId":"7"}}',
  '{"message":{"attributes":{"a":"b"},"message_id":"7"},"subscription":"projects/p/subscriptions/s"}',
])('%j has no data: it is taken and dropped, as to send it again would not mend it', async (body) => {
  expect(parsePush(bytes(body))).toEqual({ id: '7' })
  const host = testHost()
  const section = v.parse(mailpushSection.schema, { enabled: true, topic: 'projects/p/topics/t' })
  const request = { headers: {}, url: new URL('http://localhost/'), body: bytes(body), receivedAtMs: 0 }
  expect(await createMailpush(host, section).webhook?.parse(request)).toEqual([])
  expect(host.logs).toMatchObject([{ level: 'warn', fields: { push: '7' } }])
})

test('§4.2 a sample is a push that is let in, and an ignored one says nothing', async () => {
  const section = v.parse(mailpushSection.schema, { enabled: true, topic: 'projects/p/topics/t', webhook_secret: 'mailpush-secret-01' })
  const { webhook } = createMailpush(testHost(), section)
  const sample = { sender: 'ada@example.com', text: 'hello', id: 'sample-1', atMs: 1_767_225_600_000 }
  const made = webhook?.sample(sample)
  expect(made?.headers.authorization).toBe('Bearer mailpush-secret-01')
  expect(parsePush(bytes(made?.body ?? ''))).toEqual({
    id: 'sample-1',
    notice: { mailbox: 'ada@example.com', historyId: 1_767_225_600_000n },
  })
  expect(parsePush(bytes(webhook?.sample({ ...sample, ignored: true }).body ?? ''))).toEqual({ id: 'sample-1' })
})

test('a sample nobody but the push service could prove says so', () => {
  const keys = { enabled: true, topic: 'projects/p/topics/t', webhook_url: 'https://gw.example/webhook/mailpush' }
  const sample = { sender: 'ada@example.com', text: 'hello', id: 'sample-1', atMs: 1_767_225_600_000 }
  const sampleOf = (proof: object) => {
    const { webhook } = createMailpush(testHost(), v.parse(mailpushSection.schema, { ...keys, ...proof }))
    expect(webhook?.registered).toBe('https://gw.example/webhook/mailpush')
    return webhook?.sample(sample)
  }
  expect(sampleOf({ service_account: 'push@p.example' })?.unproved).toBe(true)
  expect(sampleOf({ service_account: 'push@p.example', webhook_secret: 's' })?.unproved).toBeUndefined()
  expect(sampleOf({})?.unproved).toBeUndefined()
})
