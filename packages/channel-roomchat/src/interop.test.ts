/** Runs the channel against a fake server over real sockets, with faults on the wire. */
import { AppError, type Channel, type Inbound, type Outbound, sha256Hex } from '@sluice/sdk'
import { abortedOnArrival, type FakeProvider, type ProviderFault, startFakeProvider } from '@sluice/testkit/fake-provider'
import { type TestHost, testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { roomchatSection } from './config.ts'
import feature from './index.ts'
import { ROOMCHAT_APP_TOKEN, ROOMCHAT_SECRET, type RoomchatFake, startRoomchatFake } from './testing/fake.ts'

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
  if (!built) throw new Error('the feature built no channel')
  return built
}

/** Verifies and parses a request of the server, which must contain one message. */
async function receive(from: Channel, { headers, body }: Delivery): Promise<Inbound> {
  const raw = { headers, body: new TextEncoder().encode(body), url: new URL('http://localhost/roomchat'), receivedAtMs: 0 }
  await from.webhook?.verify(raw)
  const [message, ...more] = (await from.webhook?.parse(raw)) ?? []
  if (!message || more.length > 0) throw new Error('expected exactly one message')
  return message
}

type Delivery = ReturnType<RoomchatFake['write']>

const hello: Outbound = { text: 'hello', clientId: 'client-1' }
const send = (by: Channel, signal = new AbortController().signal): Promise<unknown> =>
  by.send({ to: 'ops4room' }, hello, signal).catch((error: unknown) => error)

describe('acknowledge', () => {
  test('the bot reacts once to a message, however often it is called', async () => {
    const bot = channel()
    const delivery = fake.write({ text: 'what is new?' })
    const message = await receive(bot, delivery)
    for (let call = 0; call < 2; call += 1) await bot.acknowledge?.(message, new AbortController().signal)
    expect(fake.reactions).toEqual([{ room: 'ops4room', message: delivery.id, reaction: '👀' }])
  })

  test.each([
    ['`ack_reactions = false`', { ack_reactions: false }],
    ['no secret, since only bots react', { webhook_secret: undefined }],
  ])('is missing with %s', (_, changes) => {
    expect(channel(changes).acknowledge).toBeUndefined()
  })
})

test('receives a message and quotes it in the reply to its room', async () => {
  const bot = channel()
  const delivery = fake.write({ text: 'what is new?', actor: 'guests/6f1b' })
  const { id } = delivery
  const message = await receive(bot, delivery)
  expect(message).toMatchObject({ id: `ops4room/${id}`, account: new URL(fake.url).host, sender: 'guests/6f1b', text: 'what is new?' })
  const sent = await bot.send(message.to, { text: 'nothing, “né” 😀', clientId: 'client-1' }, new AbortController().signal)
  expect(sent).toEqual({ id: sha256Hex('client-1') })
  expect(fake.sent).toMatchObject([
    { by: 'bot', room: 'ops4room', text: 'nothing, “né” 😀', replyTo: id, referenceId: sent.id, silent: false },
  ])
})

test('replies without a quote to a deleted message', async () => {
  const bot = channel()
  const question = fake.write({ text: 'a question' })
  const { to } = await receive(bot, question)
  fake.remove(question.id)
  await bot.send(to, hello, new AbortController().signal)
  expect(fake.sent.map(({ text, replyTo }) => [text, replyTo])).toEqual([['hello', undefined]])
})

test('rejects an event of a server with another secret', async () => {
  const bot = channel()
  fake.change({ secret: 'another secret' })
  await expect(receive(bot, fake.write({ text: 'x' }))).rejects.toMatchObject({ code: 'unauthorized' })
})

test('sends through the chat API without a secret', async () => {
  const user = channel({ webhook_secret: undefined })
  expect(await send(user)).toEqual({ id: String(fake.sent[0]?.id) })
  expect(fake.sent).toMatchObject([{ by: 'user', text: 'hello', referenceId: sha256Hex('client-1') }])
})

test('sends 32,000 characters of any script', async () => {
  const bot = channel()
  const text = '😀'.repeat(bot.limits.text)
  await bot.send({ to: 'ops4room' }, { text, clientId: 'c' }, new AbortController().signal)
  expect(fake.sent[0]?.text).toBe(text)
})

describe('invalid credentials', () => {
  test('are unavailable until the operator replaces them', async () => {
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

  test('lead to rate_limited after many attempts', async () => {
    const wrong = channel({ webhook_secret: 'another secret' })
    for (let tries = 0; tries < 10; tries++) await send(wrong)
    expect(await send(channel())).toMatchObject({ code: 'rate_limited' })
  })
})

describe('faults on the wire', () => {
  const status = (code: number, headers: Record<string, string> = {}): ProviderFault => ({
    fault: 'status',
    status: code,
    headers,
    body: {},
  })

  test.each<[name: string, fault: ProviderFault, code: string, retryAfterSecs: number | undefined, arrived: number]>([
    ['429', status(429), 'rate_limited', undefined, 0],
    ['429 with Retry-After', status(429, { 'retry-after': '30' }), 'rate_limited', 30, 0],
    ['503 with Retry-After', status(503, { 'retry-after': '120' }), 'unavailable', 120, 0],
    ['500', status(500), 'upstream', undefined, 0],
    ['502', status(502), 'upstream', undefined, 0],
    ['503', status(503), 'unavailable', undefined, 0],
    ['403', status(403), 'forbidden', undefined, 0],
    ['404', status(404), 'invalid_request', undefined, 0],
    ['a reset before the request', { fault: 'reset' }, 'upstream', undefined, 0],
    ['a reset after the request', { fault: 'lost' }, 'upstream', undefined, 1],
    ['truncated JSON', { fault: 'cut' }, 'upstream', undefined, 1],
    ['a garbled answer', { fault: 'garbage' }, 'upstream', undefined, 1],
    ['an answer of more than 1 MiB', { fault: 'status', status: 201, body: 'x'.repeat(1_048_577) }, 'upstream', undefined, 0],
  ])('maps %s to an error code', async (_name, fault, code, retryAfterSecs, arrived) => {
    fake.fail(fault)
    const error = await send(channel())
    expect(error).toBeInstanceOf(AppError)
    expect(error).toMatchObject({ code, retryAfterSecs })
    expect([fake.sent.length, fake.requests.length]).toEqual([arrived, 1])
    expect(JSON.stringify([host.logs, String(error), (error as AppError).stack])).not.toMatch(/roomchat-(?:webhook-secret|app-token)-01/)
  })

  test('sends the message once after a burst of failures', async () => {
    fake.fail(status(429), { times: 3 })
    const outcomes: unknown[] = []
    for (let tries = 0; tries < 4; tries++) outcomes.push(await send(channel()))
    expect(outcomes.at(-1)).toEqual({ id: sha256Hex('client-1') })
    expect(fake.sent).toHaveLength(1)
  })

  test('waits for a slow answer', async () => {
    fake.fail({ fault: 'slow', ms: 1 })
    expect(await send(channel())).toEqual({ id: sha256Hex('client-1') })
  })

  test('stops waiting for an answer when aborted', async () => {
    expect(await send(channel(), abortedOnArrival(fake))).toMatchObject({ code: 'aborted' })
  })

  test('reports a refused connection as unavailable', async () => {
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

  test('are not followed, so no credential reaches another host', async () => {
    for (const by of [channel(), channel({ webhook_secret: undefined })]) {
      for (const code of [302, 307]) {
        fake.fail({ fault: 'status', status: code, headers: { location: elsewhere.url }, body: {} })
        expect(await send(by)).toMatchObject({ code: 'invalid_request' })
      }
    }
    expect([fake.sent, elsewhere.requests]).toEqual([[], []])
  })
})
