/** The channel against a fake REST API over real sockets, with failures of the platform and the network. */
import { AppError, type Channel, type Outbound } from '@sluice/sdk'
import { abortedOnArrival, type FakeProvider, type ProviderFault, startFakeProvider } from '@sluice/testkit/fake-provider'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DISCORD_BOT, DISCORD_CHANNEL, DISCORD_DIRECT } from './testing/fake.ts'
import { channelOn, discordHarness } from './testing/harness.ts'

const harness = discordHarness()
const channel = (changes: object = {}): Channel => channelOn(harness.fake, harness.host, changes)
const to = { to: DISCORD_CHANNEL }
const hello: Outbound = { text: 'hello', clientId: 'client-1' }
const { signal: never } = new AbortController()
const send = (by: Channel = channel(), signal = never, message = hello): Promise<unknown> =>
  by.send(to, message, signal).catch((error: unknown) => error)

describe('the channel', () => {
  test('quotes the message it replies to and returns the id', async () => {
    const { fake } = harness
    const question = fake.say({ text: 'what is new?' })
    const sent = await channel().send({ ...to, replyTo: question }, { text: 'nothing, “né” 😀', clientId: 'c' }, never)
    expect(fake.sent).toMatchObject([
      { id: sent.id, content: 'nothing, “né” 😀', type: 19, message_reference: { message_id: question }, author: { id: DISCORD_BOT } },
    ])
  })

  test('replies without a quote when the message was deleted', async () => {
    await channel().send({ ...to, replyTo: '1' }, hello, never)
    expect(harness.fake.sent.map(({ content, type }) => [content, type])).toEqual([['hello', 0]])
  })

  test('sends 2,000 characters of any kind', async () => {
    const text = '😀'.repeat(channel().limits.text)
    await channel().send(to, { text, clientId: 'c' }, never)
    expect(harness.fake.sent[0]?.content).toBe(text)
  })

  test.each(['@everyone stand up', '@here', '<@400000000000000001> hi', '<@&500000000000000001> hi'])(
    'notifies no user by %s, in a new message or an edit',
    async (text) => {
      const sent = await channel().send(to, { text, clientId: 'c' }, never)
      await channel().update?.(to, sent, { text, clientId: 'c' }, never)
      expect(harness.fake.sent[0]?.content).toBe(text)
      expect(harness.fake.pings).toEqual([])
    },
  )

  test('posts a repeated message once, thanks to its nonce', async () => {
    const first = await channel().send(to, hello, never)
    expect(await channel().send(to, hello, never)).toEqual(first)
    await channel().send(to, { ...hello, clientId: 'client-2' }, never)
    expect(harness.fake.sent).toHaveLength(2)
  })

  test('shows buttons, and removes them in an edit without buttons', async () => {
    const buttons = [
      { label: 'Approve', value: 'approve:1', tone: 'good' as const },
      { label: 'R'.repeat(200), value: 'reject:1', tone: 'bad' as const },
    ]
    const sent = await channel().send(to, { ...hello, buttons }, never)
    expect(harness.fake.sent[0]?.components).toEqual([
      {
        type: 1,
        components: [
          { type: 2, style: 3, label: 'Approve', custom_id: 'approve:1' },
          { type: 2, style: 4, label: 'R'.repeat(80), custom_id: 'reject:1' },
        ],
      },
    ])
    await channel().update?.(to, sent, { text: 'approved by ada', clientId: 'c' }, never)
    expect(harness.fake.sent[0]).toMatchObject({ content: 'approved by ada', components: [] })
  })

  test('uploads files that can be downloaded unchanged', async () => {
    const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index % 256)
    const attachments = [
      { kind: 'image' as const, name: 'né.png', mime: 'image/png', source: { bytes } },
      { kind: 'file' as const, name: 'b.txt', source: { bytes: new TextEncoder().encode('two') } },
    ]
    await channel().send(to, { text: '', clientId: 'c', attachments }, never)
    const [first, second] = harness.fake.sent[0]?.attachments ?? []
    expect([first?.filename, second?.filename]).toEqual(['né.png', 'b.txt'])
    const options = { bytesMax: 100_000, signal: never }
    const fetched = { kind: 'image' as const, name: 'né.png', source: { url: first?.url ?? '' } }
    expect(await channel().fetchMedia?.(fetched, options)).toEqual({ bytes: Buffer.from(bytes), mime: 'image/png' })
  })

  test('rejects an attachment without bytes before it sends anything', async () => {
    const attachments = [{ kind: 'file' as const, name: 'a', source: { url: 'https://example.com/a' } }]
    await expect(channel().send(to, { ...hello, attachments }, never)).rejects.toMatchObject({ code: 'invalid_request' })
    expect(harness.fake.requests).toEqual([])
  })

  test('opens a thread for a topic and shortens its name', async () => {
    const { id } = await channel().send(to, { ...hello, topic: 'T'.repeat(300) }, never)
    expect([...harness.fake.threads]).toEqual([[id, { name: 'T'.repeat(100), parent: DISCORD_CHANNEL }]])
  })

  test('succeeds although the thread cannot be opened', async () => {
    const sent = await channel().send({ to: DISCORD_DIRECT }, { ...hello, topic: 'T' }, never)
    expect(harness.fake.sent.map(({ id }) => id)).toEqual([sent.id])
    expect(harness.host.logs).toMatchObject([{ level: 'warn', message: 'no thread could be opened' }])
  })

  test('quotes the first message of a thread that does not exist', async () => {
    const { id } = await channel().send(to, { ...hello, topic: 'T' }, never)
    await channel().send({ ...to, thread: id }, { ...hello, text: 'in the thread', clientId: 'c2' }, never)
    expect(harness.fake.messages(id)).toMatchObject([{ content: 'in the thread' }])
    const alone = await channel().send({ to: DISCORD_DIRECT }, { ...hello, clientId: 'c3' }, never)
    const sent = await channel().send({ to: DISCORD_DIRECT, thread: alone.id }, { ...hello, text: 'outside', clientId: 'c4' }, never)
    expect(harness.fake.messages(DISCORD_DIRECT).at(-1)).toMatchObject({
      id: sent.id,
      content: 'outside',
      message_reference: { message_id: alone.id },
    })
    const nowhere = channel().send({ to: '1', thread: '2' }, { ...hello, clientId: 'c5' }, never)
    await expect(nowhere).rejects.toMatchObject({ code: 'invalid_request', message: 'discord answered 404: Unknown Channel (10003)' })
  })

  test('shows the typing indicator', async () => {
    await channel().typing?.(to, never)
    expect(harness.fake.typing).toEqual([DISCORD_CHANNEL])
  })

  test('sets draftEveryMs only with stream_mode partial', () => {
    expect(channel().draftEveryMs).toBeUndefined()
    expect(channel({ stream_mode: 'partial', draft_update_interval_ms: 1500 }).draftEveryMs).toBe(1500)
  })
})

describe('a refusal of the platform', () => {
  test('for a missing or forbidden conversation is final and explained', async () => {
    await expect(channel().send({ to: '1' }, hello, never)).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'discord answered 404: Unknown Channel (10003)',
    })
    harness.fake.forbid(DISCORD_CHANNEL)
    expect(await send()).toMatchObject({ code: 'forbidden', message: 'discord answered 403: Missing Permissions (50013)' })
  })

  test.each([
    ['an empty message', ''],
    ['a message that is too long', 'x'.repeat(2001)],
  ])('for %s is final', async (_name, text) => {
    expect(await send(channel(), never, { ...hello, text })).toMatchObject({ code: 'invalid_request' })
  })

  test('for an edit of a deleted message is final', async () => {
    await expect(channel().update?.(to, { id: '1' }, hello, never)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('for a wrong token is temporary', async () => {
    const by = channel()
    const { token } = harness.fake
    harness.fake.changeToken('another token')
    expect(await send(by)).toMatchObject({ code: 'unavailable', message: expect.stringContaining('discord answered 401') })
    harness.fake.changeToken(token)
    expect(await send(by)).toEqual({ id: harness.fake.sent[0]?.id })
  })
})

describe('send with a failing platform', () => {
  const status = (code: number, headers: Record<string, string> = {}, body: unknown = {}): ProviderFault => ({
    fault: 'status',
    status: code,
    headers,
    body,
  })

  test.each<[name: string, fault: ProviderFault, code: string, retryAfterSecs: number | undefined, arrived: number]>([
    ['429 without an explanation', status(429), 'rate_limited', undefined, 0],
    ['429 with Retry-After', status(429, { 'retry-after': '30' }), 'rate_limited', 30, 0],
    ['429 with retry_after in its body', status(429, {}, { message: 'Slow down', retry_after: 0.64, global: false }), 'rate_limited', 1, 0],
    ['429 with a malformed retry_after', status(429, {}, { retry_after: 'soon' }), 'rate_limited', undefined, 0],
    ['429 of a proxy', status(429, {}, 'error code: 1015'), 'rate_limited', undefined, 0],
    ['503 with Retry-After', status(503, { 'retry-after': '120' }), 'unavailable', 120, 0],
    ['500', status(500), 'upstream', undefined, 0],
    ['502', status(502), 'upstream', undefined, 0],
    ['503', status(503), 'unavailable', undefined, 0],
    ['a reset before the request arrived', { fault: 'reset' }, 'upstream', undefined, 0],
    ['a reset after the request arrived', { fault: 'lost' }, 'upstream', undefined, 1],
    ['truncated JSON', { fault: 'cut' }, 'upstream', undefined, 1],
    ['an answer that is not JSON', { fault: 'garbage' }, 'upstream', undefined, 1],
    ['an answer of more than 1 MiB', status(200, {}, 'x'.repeat(1_048_577)), 'upstream', undefined, 0],
  ])('(%s) tells whether the message may have been sent', async (_name, fault, code, retryAfterSecs, arrived) => {
    harness.fake.fail(fault)
    const error = await send()
    expect(error).toBeInstanceOf(AppError)
    expect(error).toMatchObject({ code, retryAfterSecs })
    expect([harness.fake.sent.length, harness.fake.requests.length]).toEqual([arrived, 1])
    expect(JSON.stringify([harness.host.logs, String(error), (error as AppError).stack])).not.toContain(harness.fake.token)
  })

  test('can be repeated until the message is posted once', async () => {
    harness.fake.fail(status(429), { times: 3 })
    const outcomes: unknown[] = []
    for (let tries = 0; tries < 4; tries++) outcomes.push(await send())
    expect(outcomes.at(-1)).toEqual({ id: harness.fake.sent[0]?.id })
    expect(harness.fake.sent).toHaveLength(1)
  })

  test('waits for a slow answer', async () => {
    harness.fake.fail({ fault: 'slow', ms: 1 })
    expect(await send()).toEqual({ id: harness.fake.sent[0]?.id })
  })

  test('is aborted when the answer never arrives', async () => {
    expect(await send(channel(), abortedOnArrival(harness.fake))).toMatchObject({ code: 'aborted' })
  })

  test('is unavailable when the platform cannot be reached', async () => {
    const by = channel()
    await harness.fake.close()
    expect(await send(by)).toMatchObject({ code: 'unavailable' })
    await harness.start({})
  })
})

describe('a redirect', () => {
  let elsewhere: FakeProvider
  beforeEach(async () => {
    elsewhere = await startFakeProvider(() => ({ status: 200, body: { id: '1' } }))
  })
  afterEach(() => elsewhere.close())

  test('is not followed, so that no other host receives the token', async () => {
    for (const code of [302, 307]) {
      harness.fake.fail({ fault: 'status', status: code, headers: { location: elsewhere.url }, body: {} })
      expect(await send()).toMatchObject({ code: 'invalid_request' })
    }
    expect([harness.fake.sent, elsewhere.requests]).toEqual([[], []])
  })

  test('of a file is not followed', async () => {
    harness.fake.fail({ fault: 'status', status: 302, headers: { location: elsewhere.url }, body: {} })
    const file = { kind: 'file' as const, name: 'a', source: { url: `${harness.fake.url}/attachments/1` } }
    await expect(channel().fetchMedia?.(file, { bytesMax: 10, signal: never })).rejects.toMatchObject({ code: 'invalid_request' })
    expect(elsewhere.requests).toEqual([])
  })
})
