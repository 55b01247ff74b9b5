/** The channel and its fake against `@line/bot-sdk`, the official SDK: its verifier of signatures, its client and its types. */
import { type webhook as events, messagingApi, validateSignature } from '@line/bot-sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lineSection } from './config.ts'
import feature from './index.ts'
import { LINE_BOT, LINE_TOKEN, LINE_USER, type LineFake, startLineFake } from './testing/fake.ts'
import { LINE_SECRET, sectionOf } from './testing/section.ts'
import { lineVectors } from './testing/vectors.ts'
import { createWebhook } from './webhook.ts'

let fake: LineFake
beforeEach(async () => {
  fake = await startLineFake()
})
afterEach(() => fake.close())

const webhook = createWebhook({ secret: LINE_SECRET, groupPolicy: 'mention', groupSenders: undefined })

test('the SDK accepts the signatures of the samples', () => {
  for (const text of ['hello', 'größe 😀', '']) {
    const { body, headers } = webhook.sample({ sender: LINE_USER, text, id: '1', atMs: 1_767_225_600_000 })
    expect(validateSignature(body, LINE_SECRET, headers['x-line-signature'] ?? '')).toBe(true)
    expect(validateSignature(body, 'line-secret-02', headers['x-line-signature'] ?? '')).toBe(false)
  }
})

test('the SDK and the channel agree about every reference request', async () => {
  for (const { id, requests, answers } of lineVectors) {
    for (const [index, { headers = [], body = '' }] of requests(fake).entries()) {
      const signature = headers[0]?.[1] ?? ''
      const answer = answers[index] ?? 0
      const status = typeof answer === 'number' ? answer : answer[0]
      expect(validateSignature(Buffer.from(body), LINE_SECRET, signature), `${id} ${index}`).toBe(status !== 401)
    }
  }
})

test('an event in the types of the SDK is parsed', async () => {
  const event: events.MessageEvent = {
    type: 'message',
    mode: 'active',
    timestamp: 1_767_225_600_000,
    webhookEventId: '01KDVH0000000000000000EV01',
    deliveryContext: { isRedelivery: true },
    replyToken: 'rt',
    source: { type: 'user', userId: LINE_USER },
    message: { type: 'text', id: '1', text: 'hi', quoteToken: 'q', emojis: [] },
  }
  const unsend: events.UnsendEvent = {
    type: 'unsend',
    mode: 'active',
    timestamp: 1_767_225_601_000,
    webhookEventId: '01KDVH0000000000000000EV02',
    deliveryContext: { isRedelivery: false },
    source: { type: 'user', userId: LINE_USER },
    unsend: { messageId: '1' },
  }
  const request: events.CallbackRequest = { destination: LINE_BOT, events: [event, unsend] }
  const body = new TextEncoder().encode(JSON.stringify(request))
  const messages = await webhook.parse({ headers: {}, url: new URL('http://localhost/line'), body, receivedAtMs: 0 })
  expect(messages).toMatchObject([
    { id: '1', account: LINE_BOT, text: 'hi' },
    { id: 'unsend:1', changes: { message: '1', what: 'deleted' } },
  ])
})

test('the fake accepts what the client of the SDK sends, and refuses it in the same way', async () => {
  const client = new messagingApi.MessagingApiClient({ channelAccessToken: LINE_TOKEN, baseURL: fake.url })
  const replyToken = fake.replyToken('a', LINE_USER)
  const { sentMessages } = await client.replyMessage({ replyToken, messages: [{ type: 'text', text: 'reply' }] })
  expect(fake.sent).toMatchObject([{ id: sentMessages[0]?.id, text: 'reply', by: 'reply' }])
  await expect(client.replyMessage({ replyToken, messages: [{ type: 'text', text: 'again' }] })).rejects.toMatchObject({ status: 400 })
  const key = '123e4567-e89b-42d3-a456-426655440000'
  const push = () => client.pushMessage({ to: LINE_USER, messages: [{ type: 'text', text: 'push' }] }, key)
  await push()
  await expect(push()).rejects.toMatchObject({ status: 409 })
  await client.showLoadingAnimation({ chatId: LINE_USER, loadingSeconds: 5 })
  await expect(client.showLoadingAnimation({ chatId: LINE_USER, loadingSeconds: 7 })).rejects.toMatchObject({ status: 400 })
  expect(fake.sent).toHaveLength(2)
})

test('the channel sends messages in the types of the SDK', async () => {
  const [channel] = feature.build(testHost({ fetch }), v.parse(lineSection.schema, sectionOf(fake))).channels ?? []
  const buttons = [{ label: 'Approve', value: 'approve:1', tone: 'good' as const }]
  await channel?.send({ to: LINE_USER, more: { quote: 'q' } }, { text: 'May it?', buttons, clientId: 'a' }, new AbortController().signal)
  const sent = fake.requests[0]?.json as messagingApi.PushMessageRequest
  const expected: messagingApi.PushMessageRequest = {
    to: LINE_USER,
    messages: [
      {
        type: 'text',
        text: 'May it?',
        quoteToken: 'q',
        quickReply: {
          items: [{ type: 'action', action: { type: 'postback', label: 'Approve', data: 'approve:1', displayText: 'Approve' } }],
        },
      },
    ],
  }
  expect(sent).toEqual(expected)
})
