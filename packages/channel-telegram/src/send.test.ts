/** Messages, edits and files over real sockets, with failures of the platform and the network. */
import { AppError, type Channel, type Outbound } from '@sluice/sdk'
import { abortedOnArrival, type FakeProvider, type ProviderFault, startFakeProvider } from '@sluice/testkit/fake-provider'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TELEGRAM_FORUM, TELEGRAM_GROUP, TELEGRAM_TOKEN } from './testing/fake.ts'
import { type Harness, startHarness } from './testing/harness.ts'

let harness: Harness
beforeEach(async () => {
  harness = await startHarness()
})
afterEach(() => harness.close())

const hello: Outbound = { text: 'hello', clientId: 'client-1' }
const GROUP = String(TELEGRAM_GROUP)
const signal = new AbortController().signal
const status = (code: number, body: object = {}, headers: Record<string, string> = {}): ProviderFault => ({
  fault: 'status',
  status: code,
  headers,
  body,
})
const outcome = (work: Promise<unknown> | undefined): Promise<unknown> => (work ?? Promise.resolve()).catch((error: unknown) => error)
const send = (by: Channel = harness.channel().channel, to = GROUP, message = hello) => outcome(by.send({ to }, message, signal))

test('the menu shows the commands in force, and none once they are removed', async () => {
  const { fake, channel } = harness
  const offer = (commands: readonly { name: string; description: string }[]) => outcome(channel().channel.offerCommands?.(commands, signal))
  expect(await offer([{ name: 'stop', description: 'é'.repeat(300) }])).toBeUndefined()
  expect(fake.menu).toEqual([{ command: 'stop', description: 'é'.repeat(256) }])
  expect(await offer([{ name: 'Stop!', description: 'x' }])).toMatchObject({ code: 'invalid_request' })
  expect(await offer([])).toBeUndefined()
  expect(fake.menu).toEqual([])
})

describe('a text', () => {
  test('is sent without markup, as a reply, into its topic', async () => {
    const { fake, channel } = harness
    const question = fake.say({ chat: TELEGRAM_FORUM, thread: 7, text: '?' })
    const to = { to: String(TELEGRAM_FORUM), thread: '7', replyTo: String(question.id) }
    const text = '*not* _markup_ <b>“né”</b> 😀'
    const sent = await channel().channel.send(to, { ...hello, text }, signal)
    expect(fake.sent()).toMatchObject([{ chat: TELEGRAM_FORUM, thread: 7, replyTo: question.id, text }])
    expect(sent.id).toBe(`${TELEGRAM_FORUM}:${fake.sent()[0]?.id}`)
  })

  test('shows its styles as entities, counted in UTF-16 units, and also under a file and in an edit', async () => {
    const { fake, channel } = harness
    const styles = [
      { kind: 'bold', from: 3, to: 7 },
      { kind: 'link', from: 8, to: 12, value: 'https://a.b' },
    ] as const
    const styled = { ...hello, text: '😀 bold link', styles }
    const entities = [
      { type: 'bold', offset: 3, length: 4 },
      { type: 'text_link', offset: 8, length: 4, url: 'https://a.b' },
    ]
    const attachments = [{ kind: 'file', name: 'a.txt', source: { bytes: new TextEncoder().encode('a') } }] as const
    const by = channel().channel
    const sent = await by.send({ to: GROUP }, styled, signal)
    await by.send({ to: GROUP }, { ...styled, attachments }, signal)
    await by.update?.({ to: GROUP }, sent, { ...styled, text: '😀 Bold link' }, signal)
    const bodies = fake.requests.filter(({ path }) => /sendMessage|sendDocument|editMessageText/.test(path))
    expect(bodies.map(({ json }) => (json as { entities?: object } | undefined)?.entities)).toEqual([entities, undefined, entities])
    expect(bodies[1]?.body.toString()).toContain(JSON.stringify(entities))
  })

  test('is sent without styles when the platform refuses them', async () => {
    const { fake, channel } = harness
    fake.fail(status(400, { ok: false, error_code: 400, description: "Bad Request: can't parse entities" }), {
      matches: ({ path }) => path.endsWith('sendMessage'),
    })
    await channel().channel.send({ to: GROUP }, { ...hello, styles: [{ kind: 'bold', from: 0, to: 5 }] }, signal)
    expect(fake.sent()).toMatchObject([{ text: 'hello' }])
  })

  test('can quote a message by the id that send returned', async () => {
    const { fake, channel } = harness
    const question = fake.say({ chat: TELEGRAM_GROUP, text: '?' })
    await channel().channel.send({ to: GROUP, replyTo: `${GROUP}:${question.id}` }, hello, signal)
    expect(fake.sent()).toMatchObject([{ replyTo: question.id }])
  })

  test('is sent without a quote when the quoted message does not exist', async () => {
    const { fake, channel } = harness
    for (const replyTo of ['99999', 'x']) await channel().channel.send({ to: GROUP, replyTo }, hello, signal)
    expect(fake.sent().map(({ replyTo }) => replyTo)).toEqual([undefined, undefined])
  })

  test('and its files are sent outside of a topic that is gone', async () => {
    const { fake, channel } = harness
    const question = fake.say({ chat: TELEGRAM_FORUM, text: '?' })
    const to = { to: String(TELEGRAM_FORUM), thread: '9', replyTo: String(question.id) }
    const attachments = [{ kind: 'file', name: 'a.txt', source: { bytes: new TextEncoder().encode('a') } }] as const
    const long = 'x'.repeat(2000)
    await channel().channel.send(to, { ...hello, text: long, attachments }, signal)
    expect(fake.sent()).toMatchObject([{ text: long, replyTo: question.id }, { file: { name: 'a.txt' } }])
    expect(fake.sent().map(({ thread }) => thread)).toEqual([undefined, undefined])
  })

  test.each([
    // https://core.telegram.org/method/messages.sendMessage: the errors of topics
    'Bad Request: TOPIC_CLOSED',
    'Bad Request: TOPIC_DELETED',
    'Bad Request: MESSAGE_THREAD_INVALID',
  ])('is sent outside of a topic that is refused with "%s"', async (description) => {
    const { fake, channel } = harness
    const { host, channel: by } = channel()
    fake.fail(status(400, { ok: false, error_code: 400, description }))
    await by.send({ to: String(TELEGRAM_FORUM), thread: '7' }, hello, signal)
    expect(fake.sent()).toMatchObject([{ text: 'hello' }])
    expect(fake.sent()[0]?.thread).toBeUndefined()
    expect(host.logs).toMatchObject([{ level: 'warn', fields: { topic: '7' } }])
  })

  test('that quotes a message of a topic which was closed is sent outside of it without the quote', async () => {
    const { fake, channel } = harness
    const question = fake.say({ chat: TELEGRAM_FORUM, text: '?', thread: 7 })
    fake.closeTopic(TELEGRAM_FORUM, 7)
    await channel().channel.send({ to: String(TELEGRAM_FORUM), thread: '7', replyTo: String(question.id) }, hello, signal)
    expect(fake.sent()).toMatchObject([{ text: 'hello' }])
    expect(fake.sent()[0]).not.toHaveProperty('thread')
    expect(fake.sent()[0]).not.toHaveProperty('replyTo')
  })

  test('has at most 4096 UTF-16 units of any kind', async () => {
    const { fake, channel } = harness
    const text = '😀'.repeat(channel().channel.limits.text / 2)
    await channel().channel.send({ to: GROUP }, { ...hello, text }, signal)
    expect(fake.sent()[0]?.text).toBe(text)
    expect(await send(undefined, GROUP, { ...hello, text: `${text}x` })).toMatchObject({ code: 'invalid_request' })
  })

  test('to a group with a new id is sent there once', async () => {
    const { fake, channel } = harness
    fake.migrate(TELEGRAM_GROUP, { id: -100_900, type: 'supergroup' })
    const { host, channel: by } = channel()
    expect(await send(by)).toEqual({ id: `-100900:${fake.sent()[0]?.id}` })
    expect(fake.sent()).toMatchObject([{ chat: -100_900, text: 'hello' }])
    expect(host.logs).toMatchObject([{ level: 'warn', fields: { old: GROUP, new: '-100900' } }])
  })
})

describe('an edit', () => {
  const buttons = ['Approve', 'Reject', 'Later', 'Never'].map((label) => ({ label, value: `${label}:1`, tone: 'good' as const }))

  test('without buttons removes the buttons of the message', async () => {
    const { fake, channel } = harness
    const { channel: by } = channel()
    const sent = await by.send({ to: GROUP }, { ...hello, buttons }, signal)
    expect(fake.sent()[0]?.buttons).toEqual([['Approve:1', 'Reject:1', 'Later:1'], ['Never:1']])
    await by.update?.({ to: GROUP }, sent, { ...hello, text: 'approved by Ada' }, signal)
    expect(fake.sent()[0]).toMatchObject({ text: 'approved by Ada', edits: 1 })
    expect(fake.sent()[0]?.buttons).toBeUndefined()
  })

  test('with the same text succeeds', async () => {
    const { fake, channel } = harness
    const { channel: by } = channel()
    const sent = await by.send({ to: GROUP }, hello, signal)
    await by.update?.({ to: GROUP }, sent, hello, signal)
    expect(fake.sent()[0]?.edits).toBe(0)
  })

  test('of a missing or foreign message, or with files, is rejected', async () => {
    const { fake, channel } = harness
    const { channel: by } = channel()
    const theirs = fake.say({ chat: TELEGRAM_GROUP, text: 'x' })
    const update = (id: string, message: Outbound = hello) => outcome(by.update?.({ to: GROUP }, { id }, message, signal))
    const files = { ...hello, attachments: [{ kind: 'file' as const, name: 'a', source: { bytes: new Uint8Array(1) } }] }
    for (const error of [
      await update(`${GROUP}:99999`),
      await update(`${GROUP}:${theirs.id}`),
      await update('x'),
      await update('1:1', files),
    ]) {
      expect(error).toMatchObject({ code: 'invalid_request' })
    }
  })

  test('is used for drafts only with stream_mode partial', () => {
    const { channel } = harness
    expect(channel().channel.draftEveryMs).toBeUndefined()
    expect(channel({ stream_mode: 'partial', draft_update_interval_ms: 1500 }).channel.draftEveryMs).toBe(1500)
  })
})

describe('a file', () => {
  const file = (kind: 'image' | 'audio' | 'video' | 'file', name: string, bytes = new Uint8Array([1, 2, 3])) => ({
    kind,
    name,
    source: { bytes },
  })

  test.each([
    ['image', 'a.PNG', 'photo'],
    ['image', 'a.svg', 'document'],
    ['audio', 'a.mp3', 'audio'],
    ['audio', 'a.ogg', 'voice'],
    ['audio', 'a.wav', 'document'],
    ['video', 'a.mp4', 'video'],
    ['file', 'a.png', 'document'],
  ] as const)('of kind %s named %s is sent as %s with a caption', async (kind, name, method) => {
    const { fake, channel } = harness
    const to = { to: String(TELEGRAM_FORUM), thread: '7' }
    const sent = await channel().channel.send(to, { ...hello, attachments: [file(kind, name)] }, signal)
    expect(fake.sent()).toMatchObject([{ text: 'hello', thread: 7, file: { method, name, bytes: new Uint8Array([1, 2, 3]) } }])
    expect(sent.id).toBe(`${TELEGRAM_FORUM}:${fake.sent()[0]?.id}`)
  })

  test('follows a long text, whose id send returns', async () => {
    const { fake, channel } = harness
    const text = 'x'.repeat(1025)
    const sent = await channel().channel.send(
      { to: GROUP },
      { text, clientId: 'c', attachments: [file('file', 'a'), file('file', 'b')] },
      signal,
    )
    expect(fake.sent().map(({ text: sentText, file: named }) => named?.name ?? sentText)).toEqual([text, 'a', 'b'])
    expect(sent.id).toBe(`${GROUP}:${fake.sent()[0]?.id}`)
  })

  test('that the platform cannot show as a picture is sent as a document', async () => {
    const { fake, channel } = harness
    fake.fail(status(400, { ok: false, error_code: 400, description: 'Bad Request: PHOTO_INVALID_DIMENSIONS' }))
    await channel().channel.send({ to: GROUP }, { ...hello, attachments: [file('image', 'wide.png')] }, signal)
    expect(fake.sent()).toMatchObject([{ file: { method: 'document', name: 'wide.png' } }])
  })

  test('that fails after the first part does not repeat the message', async () => {
    const { fake, channel } = harness
    const message = { ...hello, attachments: [file('file', 'a'), file('file', 'b')] }
    fake.fail(status(429, { ok: false, error_code: 429, description: 'x', parameters: { retry_after: 3600 } }), {
      matches: () => fake.sent().length === 1,
    })
    const error = await outcome(channel().channel.send({ to: GROUP }, message, signal))
    expect(error).toMatchObject({ code: 'upstream', message: expect.stringContaining('sent without part 2') })
    expect(fake.sent()).toHaveLength(1)
  })

  test('is sent after a short rate limit', async () => {
    const { fake, channel } = harness
    const { channel: by, host } = channel()
    fake.fail(status(429, { ok: false, error_code: 429, description: 'x', parameters: { retry_after: 2 } }), {
      matches: () => fake.sent().length === 1,
    })
    const sending = by.send({ to: GROUP }, { ...hello, attachments: [file('file', 'a'), file('file', 'b')] }, signal)
    while (host.clock.sleeping === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    await host.advance(2000)
    await sending
    expect(fake.sent().map(({ file: named }) => named?.name)).toEqual(['a', 'b'])
  })
})

test('typing shows the indicator in the chat or its topic', async () => {
  const { fake, channel } = harness
  const { channel: by } = channel()
  await by.typing?.({ to: GROUP, replyTo: '5' }, signal)
  await by.typing?.({ to: String(TELEGRAM_FORUM), thread: '8' }, signal)
  expect(fake.actions).toEqual([`${GROUP}:typing`, `${TELEGRAM_FORUM}:typing:8`])
})

describe('send with a failing platform', () => {
  const refusal = (code: number, description: string, parameters?: object) => ({ ok: false, error_code: code, description, parameters })

  test.each<[name: string, fault: ProviderFault, code: string, retryAfterSecs: number | undefined, arrived: number]>([
    ['429', status(429), 'rate_limited', undefined, 0],
    ['429 with Retry-After', status(429, {}, { 'retry-after': '30' }), 'rate_limited', 30, 0],
    ['429 with retry_after in its body', status(429, refusal(429, 'Too Many Requests', { retry_after: 12 })), 'rate_limited', 12, 0],
    ['500', status(500, refusal(500, 'Internal Server Error')), 'unavailable', undefined, 0],
    ['502', status(502), 'upstream', undefined, 0],
    ['502 with the words of a gateway', status(502, refusal(502, 'Bad Gateway')), 'upstream', undefined, 0],
    ['503', status(503), 'unavailable', undefined, 0],
    ['400', status(400, refusal(400, 'Bad Request: chat not found')), 'invalid_request', undefined, 0],
    ['403', status(403, refusal(403, 'Forbidden: bot was kicked from the group chat')), 'forbidden', undefined, 0],
    ['a bad token', status(401, refusal(401, 'Unauthorized')), 'unavailable', undefined, 0],
    ['a truncated token', status(404, refusal(404, 'Not Found')), 'unavailable', undefined, 0],
    ['404 without a refusal', status(404), 'invalid_request', undefined, 0],
    ['a reset before the request arrived', { fault: 'reset' }, 'upstream', undefined, 0],
    ['a reset after the request arrived', { fault: 'lost' }, 'upstream', undefined, 1],
    ['truncated JSON', { fault: 'cut' }, 'upstream', undefined, 1],
    ['an answer that is not JSON', { fault: 'garbage' }, 'upstream', undefined, 1],
    ['an answer without an id', status(200, { ok: true, result: {} }), 'upstream', undefined, 0],
    ['an empty answer', status(200, {}), 'upstream', undefined, 0],
    ['an answer of more than 1 MiB', { fault: 'status', status: 200, body: 'x'.repeat(1_048_577) }, 'upstream', undefined, 0],
  ])('(%s) tells whether the message may have been sent', async (_name, fault, code, retryAfterSecs, arrived) => {
    harness.fake.fail(fault)
    const { channel, host } = harness.channel()
    const error = await send(channel)
    expect(error).toBeInstanceOf(AppError)
    expect(error).toMatchObject({ code, retryAfterSecs })
    expect([harness.fake.sent().length, harness.fake.requests.length]).toEqual([arrived, 1])
    const { message, stack, cause } = error as AppError
    expect(JSON.stringify([host.logs, message, stack, cause])).not.toContain(TELEGRAM_TOKEN.slice(7))
  })

  test('quotes the refusal of the platform', async () => {
    harness.fake.block(TELEGRAM_GROUP)
    expect(await send()).toMatchObject({ code: 'forbidden', message: 'telegram answered 403: Forbidden: bot was blocked by the user' })
    expect(await send(undefined, '-1')).toMatchObject({ message: 'telegram answered 400: Bad Request: chat not found' })
  })

  test('can be repeated until the message is sent once', async () => {
    harness.fake.fail(status(429), { times: 3 })
    const outcomes: unknown[] = []
    for (let tries = 0; tries < 4; tries++) outcomes.push(await send())
    expect(outcomes.at(-1)).toMatchObject({ id: expect.stringMatching(/^-100200:\d+$/) })
    expect(harness.fake.sent()).toHaveLength(1)
  })

  test('waits for a slow answer', async () => {
    harness.fake.fail({ fault: 'slow', ms: 1 })
    expect(await send()).toMatchObject({ id: expect.any(String) })
  })

  test('is aborted when the answer never arrives', async () => {
    const { channel } = harness.channel()
    expect(await outcome(channel.send({ to: GROUP }, hello, abortedOnArrival(harness.fake)))).toMatchObject({ code: 'aborted' })
  })

  test('is unavailable when the server cannot be reached', async () => {
    const { channel } = harness.channel()
    await harness.fake.close()
    expect(await send(channel)).toMatchObject({ code: 'unavailable' })
  })
})

describe('a redirect', () => {
  let elsewhere: FakeProvider
  beforeEach(async () => {
    elsewhere = await startFakeProvider(() => ({ status: 200, body: { ok: true, result: { message_id: 1 } } }))
  })
  afterEach(() => elsewhere.close())

  test('is not followed, so that no other host receives the token', async () => {
    for (const code of [302, 307, 308]) {
      harness.fake.fail(status(code, {}, { location: `${elsewhere.url}/x` }))
      expect(await send()).toMatchObject({ code: 'invalid_request' })
    }
    const id = harness.fake.file(new Uint8Array(1), 'photos/1.jpg')
    harness.fake.fail(status(302, {}, { location: elsewhere.url }), { matches: ({ path }) => path.startsWith('/file/') })
    const media = { kind: 'image' as const, name: 'a', source: { id } }
    expect(await outcome(harness.channel().channel.fetchMedia?.(media, { bytesMax: 10, signal }))).toMatchObject({
      code: 'invalid_request',
    })
    expect(elsewhere.requests).toEqual([])
  })
})
