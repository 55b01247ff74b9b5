/** The channel and the server over real sockets, with the faults of the wire. */
import { AppError, type Channel, type Inbound, type Outbound, sha256Hex } from '@sluice/sdk'
import { abortedOnArrival, type FakeProvider, type ProviderFault, startFakeProvider } from '@sluice/testkit/fake-provider'
import { ROOMCHAT_APP_TOKEN, ROOMCHAT_SECRET, type RoomchatFake, startRoomchatFake } from '@sluice/testkit/fakes/roomchat'
import { type TestHost, testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { roomchatSection } from './config.ts'
import feature from './index.ts'

let fake: RoomchatFake
let host: TestHost
beforeEach(async () => {
  fake = await startRoomchatFake()
  host = testHost({ fetch })
})
afterEach(() => fake.close())

function channel(changes: object = {}): Channel {
  const config = { base_url: `${fake.url}/`, app_token: ROOMCHAT_APP_TOKEN, webhook_secret: ROOMCHAT_SECRET, ...changes }
  const [built] = feature.build(host, v.parse(roomchatSection.schema, config)).channels ?? []
  if (!built) throw new Error('no channel was built')
  return built
}

/** What a request of the server brings. */
async function receive(from: Channel, { headers, body }: Pick<ReturnType<RoomchatFake['write']>, 'headers' | 'body'>): Promise<Inbound> {
  const raw = { headers, body: new TextEncoder().encode(body), url: new URL('http://localhost/roomchat'), receivedAtMs: 0 }
  await from.webhook?.verify(raw)
  const [message, ...more] = (await from.webhook?.parse(raw)) ?? []
  if (!message || more.length > 0) throw new Error('not exactly one message')
  return message
}

const hello: Outbound = { text: 'hello', clientId: 'client-1' }
const send = (by: Channel, signal = new AbortController().signal): Promise<unknown> =>
  by.send({ to: 'ops4room' }, hello, signal).catch((error: unknown) => error)

test('what somebody writes comes in, and the answer quotes it in its room', async () => {
  const bot = channel()
  const { id, headers, body } = fake.write({ text: 'what is new?', actor: 'guests/6f1b' })
  const message = await receive(bot, { headers, body })
  expect(message).toMatchObject({ id: `ops4room/${id}`, account: new URL(fake.url).host, sender: 'guests/6f1b', text: 'what is new?' })
  const sent = await bot.send(message.to, { text: 'nothing, “né” 😀', clientId: 'client-1' }, new AbortController().signal)
  expect(sent).toEqual({ id: sha256Hex('client-1') })
  expect(fake.sent).toMatchObject([
    { by: 'bot', room: 'ops4room', text: 'nothing, “né” 😀', replyTo: id, referenceId: sent.id, silent: false },
  ])
})

test('a question that was deleted is answered without being quoted', async () => {
  const bot = channel()
  const question = fake.write({ text: 'a question' })
  const { to } = await receive(bot, question)
  fake.remove(question.id)
  await bot.send(to, hello, new AbortController().signal)
  expect(fake.sent.map(({ text, replyTo }) => [text, replyTo])).toEqual([['hello', undefined]])
})

test('an event of a server with another secret is unauthorized', async () => {
  const bot = channel()
  fake.change({ secret: 'another secret' })
  await expect(receive(bot, fake.write({ text: 'x' }))).rejects.toMatchObject({ code: 'unauthorized' })
})

test('without a secret the chat interface takes the message', async () => {
  const user = channel({ webhook_secret: undefined })
  expect(await send(user)).toEqual({ id: String(fake.sent[0]?.id) })
  expect(fake.sent).toMatchObject([{ by: 'user', text: 'hello', referenceId: sha256Hex('client-1') }])
})

test('32,000 characters go out, whatever they are', async () => {
  const bot = channel()
  const text = '😀'.repeat(bot.limits.text)
  await bot.send({ to: 'ops4room' }, { text, clientId: 'c' }, new AbortController().signal)
  expect(fake.sent[0]?.text).toBe(text)
})

describe('credentials that are not good', () => {
  test('a wrong secret or an expired token is waited for, and then it goes out', async () => {
    const changed = { secret: 'another secret', appToken: 'another token' }
    fake.change(changed)
    for (const by of [channel(), channel({ webhook_secret: undefined })]) {
      expect(await send(by)).toMatchObject({ code: 'unavailable', message: expect.stringContaining('roomchat answered 401') })
    }
    expect(fake.sent).toEqual([])
    await send(channel({ webhook_secret: changed.secret }))
    await send(channel({ webhook_secret: undefined, app_token: changed.appToken }))
    expect(fake.sent.map(({ by }) => by)).toEqual(['bot', 'user'])
  })

  test('a server that has had enough of them is rate_limited', async () => {
    const wrong = channel({ webhook_secret: 'another secret' })
    for (let tries = 0; tries < 10; tries++) await send(wrong)
    expect(await send(channel())).toMatchObject({ code: 'rate_limited' })
  })
})

describe('faults of the wire: not sent, refused, or nobody knows', () => {
  const status = (code: number, headers: Record<string, string> = {}): ProviderFault => ({
    fault: 'status',
    status: code,
    headers,
    body: {},
  })

  test.each<[name: string, fault: ProviderFault, code: string, retryAfterSecs: number | undefined, arrived: number]>([
    ['429', status(429), 'rate_limited', undefined, 0],
    ['429 with a time to come back', status(429, { 'retry-after': '30' }), 'rate_limited', 30, 0],
    ['503 with a time to come back', status(503, { 'retry-after': '120' }), 'unavailable', 120, 0],
    ['500', status(500), 'upstream', undefined, 0],
    ['502', status(502), 'upstream', undefined, 0],
    ['503', status(503), 'upstream', undefined, 0],
    ['403', status(403), 'forbidden', undefined, 0],
    ['404', status(404), 'invalid_request', undefined, 0],
    ['a reset before', { fault: 'reset' }, 'upstream', undefined, 0],
    ['a reset after', { fault: 'lost' }, 'upstream', undefined, 1],
    ['JSON cut in the middle', { fault: 'cut' }, 'upstream', undefined, 1],
    ['garbage', { fault: 'garbage' }, 'upstream', undefined, 1],
    ['an answer of more than 1 MiB', { fault: 'status', status: 201, body: 'x'.repeat(1_048_577) }, 'upstream', undefined, 0],
  ])('%s', async (_name, fault, code, retryAfterSecs, arrived) => {
    fake.fail(fault)
    const error = await send(channel())
    expect(error).toBeInstanceOf(AppError)
    expect(error).toMatchObject({ code, retryAfterSecs })
    expect([fake.sent.length, fake.requests.length]).toEqual([arrived, 1])
    expect(JSON.stringify([host.logs, String(error), (error as AppError).stack])).not.toMatch(/roomchat-(?:webhook-secret|app-token)-01/)
  })

  test('a burst of failures ends with the message there once', async () => {
    fake.fail(status(429), { times: 3 })
    const outcomes: unknown[] = []
    for (let tries = 0; tries < 4; tries++) outcomes.push(await send(channel()))
    expect(outcomes.at(-1)).toEqual({ id: sha256Hex('client-1') })
    expect(fake.sent).toHaveLength(1)
  })

  test('an answer that takes its time is waited for', async () => {
    fake.fail({ fault: 'slow', ms: 1 })
    expect(await send(channel())).toEqual({ id: sha256Hex('client-1') })
  })

  test('an answer that never comes ends with the abort, and may have been sent', async () => {
    expect(await send(channel(), abortedOnArrival(fake))).toMatchObject({ code: 'aborted' })
  })

  test('a server that is not there was not sent to', async () => {
    const bot = channel()
    await fake.close()
    expect(await send(bot)).toMatchObject({ code: 'unavailable' })
  })
})

describe('redirects', () => {
  let elsewhere: FakeProvider
  beforeEach(async () => {
    elsewhere = await startFakeProvider(() => ({ status: 201, body: { ocs: { data: null } } }))
  })
  afterEach(() => elsewhere.close())

  test('to another host are not followed, so that no credential gets there', async () => {
    for (const by of [channel(), channel({ webhook_secret: undefined })]) {
      for (const code of [302, 307]) {
        fake.fail({ fault: 'status', status: code, headers: { location: elsewhere.url }, body: {} })
        expect(await send(by)).toMatchObject({ code: 'invalid_request' })
      }
    }
    expect([fake.sent, elsewhere.requests]).toEqual([[], []])
  })
})
