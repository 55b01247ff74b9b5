/** What goes out, over real sockets, with the faults of the wire. */
import { AppError, type Channel, type Outbound } from '@sluice/sdk'
import { abortedOnArrival, type FakeProvider, type ProviderFault, startFakeProvider } from '@sluice/testkit/fake-provider'
import { TELEGRAM_FORUM, TELEGRAM_GROUP, TELEGRAM_TOKEN } from '@sluice/testkit/fakes/telegram'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Bench, startBench } from './testing/bench.ts'

let bench: Bench
beforeEach(async () => {
  bench = await startBench()
})
afterEach(() => bench.close())

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
const send = (by: Channel = bench.channel().channel, to = GROUP, message = hello) => outcome(by.send({ to }, message, signal))

describe('texts', () => {
  test('go out as they are, as an answer, into their topic', async () => {
    const { fake, channel } = bench
    const question = fake.say({ chat: TELEGRAM_FORUM, thread: 7, text: '?' })
    const to = { to: String(TELEGRAM_FORUM), thread: '7', replyTo: String(question.id) }
    const text = '*not* _markup_ <b>“né”</b> 😀'
    const sent = await channel().channel.send(to, { ...hello, text }, signal)
    expect(fake.sent()).toMatchObject([{ chat: TELEGRAM_FORUM, thread: 7, replyTo: question.id, text }])
    expect(sent.id).toBe(`${TELEGRAM_FORUM}:${fake.sent()[0]?.id}`)
  })

  test('may answer a message named as `Sent.id` does', async () => {
    const { fake, channel } = bench
    const question = fake.say({ chat: TELEGRAM_GROUP, text: '?' })
    await channel().channel.send({ to: GROUP, replyTo: `${GROUP}:${question.id}` }, hello, signal)
    expect(fake.sent()).toMatchObject([{ replyTo: question.id }])
  })

  test('that answer what is gone, or what was never a number, go out unquoted', async () => {
    const { fake, channel } = bench
    for (const replyTo of ['99999', 'x']) await channel().channel.send({ to: GROUP, replyTo }, hello, signal)
    expect(fake.sent().map(({ replyTo }) => replyTo)).toEqual([undefined, undefined])
  })

  test('have at most 4096 units, whatever they are', async () => {
    const { fake, channel } = bench
    const text = '😀'.repeat(channel().channel.limits.text / 2)
    await channel().channel.send({ to: GROUP }, { ...hello, text }, signal)
    expect(fake.sent()[0]?.text).toBe(text)
    expect(await send(undefined, GROUP, { ...hello, text: `${text}x` })).toMatchObject({ code: 'invalid_request' })
  })

  test('to a group with a new id are sent there, once', async () => {
    const { fake, channel } = bench
    fake.migrate(TELEGRAM_GROUP, { id: -100_900, type: 'supergroup' })
    const { host, channel: by } = channel()
    expect(await send(by)).toEqual({ id: `-100900:${fake.sent()[0]?.id}` })
    expect(fake.sent()).toMatchObject([{ chat: -100_900, text: 'hello' }])
    expect(host.logs).toMatchObject([{ level: 'warn', fields: { old: GROUP, new: '-100900' } }])
  })
})

describe('buttons and edits', () => {
  const buttons = ['Approve', 'Reject', 'Later', 'Never'].map((label) => ({ label, value: `${label}:1`, tone: 'good' as const }))

  test('buttons stand under the message, and an edit without them takes them away', async () => {
    const { fake, channel } = bench
    const { channel: by } = channel()
    const sent = await by.send({ to: GROUP }, { ...hello, buttons }, signal)
    expect(fake.sent()[0]?.buttons).toEqual([['Approve:1', 'Reject:1', 'Later:1'], ['Never:1']])
    await by.update?.({ to: GROUP }, sent, { ...hello, text: 'approved by Ada' }, signal)
    expect(fake.sent()[0]).toMatchObject({ text: 'approved by Ada', edits: 1 })
    expect(fake.sent()[0]?.buttons).toBeUndefined()
  })

  test('the same text again is no error', async () => {
    const { fake, channel } = bench
    const { channel: by } = channel()
    const sent = await by.send({ to: GROUP }, hello, signal)
    await by.update?.({ to: GROUP }, sent, hello, signal)
    expect(fake.sent()[0]?.edits).toBe(0)
  })

  test('an edit of what is gone, of another’s message, of no message or with files is refused for good', async () => {
    const { fake, channel } = bench
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

  test('drafts are shown with stream_mode = "partial" alone, and not more often than configured', () => {
    const { channel } = bench
    expect(channel().channel.draftEveryMs).toBeUndefined()
    expect(channel({ stream_mode: 'partial', draft_update_interval_ms: 1500 }).channel.draftEveryMs).toBe(1500)
  })
})

describe('files', () => {
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
  ] as const)('%s %s goes as %s, with a short text under it', async (kind, name, method) => {
    const { fake, channel } = bench
    const to = { to: String(TELEGRAM_FORUM), thread: '7' }
    const sent = await channel().channel.send(to, { ...hello, attachments: [file(kind, name)] }, signal)
    expect(fake.sent()).toMatchObject([{ text: 'hello', thread: 7, file: { method, name, bytes: new Uint8Array([1, 2, 3]) } }])
    expect(sent.id).toBe(`${TELEGRAM_FORUM}:${fake.sent()[0]?.id}`)
  })

  test('a long text goes before its files, and `Sent` is the text', async () => {
    const { fake, channel } = bench
    const text = 'x'.repeat(1025)
    const sent = await channel().channel.send(
      { to: GROUP },
      { text, clientId: 'c', attachments: [file('file', 'a'), file('file', 'b')] },
      signal,
    )
    expect(fake.sent().map(({ text: said, file: named }) => named?.name ?? said)).toEqual([text, 'a', 'b'])
    expect(sent.id).toBe(`${GROUP}:${fake.sent()[0]?.id}`)
  })

  test('a picture the platform cannot show goes as a document', async () => {
    const { fake, channel } = bench
    fake.fail(status(400, { ok: false, error_code: 400, description: 'Bad Request: PHOTO_INVALID_DIMENSIONS' }))
    await channel().channel.send({ to: GROUP }, { ...hello, attachments: [file('image', 'wide.png')] }, signal)
    expect(fake.sent()).toMatchObject([{ file: { method: 'document', name: 'wide.png' } }])
  })

  test('what fails after the first part makes nothing go out twice', async () => {
    const { fake, channel } = bench
    const message = { ...hello, attachments: [file('file', 'a'), file('file', 'b')] }
    fake.fail(status(429, { ok: false, error_code: 429, description: 'x', parameters: { retry_after: 3600 } }), {
      matches: () => fake.sent().length === 1,
    })
    const error = await outcome(channel().channel.send({ to: GROUP }, message, signal))
    expect(error).toMatchObject({ code: 'upstream', message: expect.stringContaining('out without part 2') })
    expect(fake.sent()).toHaveLength(1)
  })

  test('a short wait between the parts is waited', async () => {
    const { fake, channel } = bench
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

test('typing is shown in the chat, and in its topic', async () => {
  const { fake, channel } = bench
  const { channel: by } = channel()
  await by.typing?.({ to: GROUP, replyTo: '5' }, signal)
  await by.typing?.({ to: String(TELEGRAM_FORUM), thread: '8' }, signal)
  expect(fake.actions).toEqual([`${GROUP}:typing`, `${TELEGRAM_FORUM}:typing:8`])
})

describe('faults of the wire: not sent, refused, or nobody knows', () => {
  const refusal = (code: number, description: string, parameters?: object) => ({ ok: false, error_code: code, description, parameters })

  test.each<[name: string, fault: ProviderFault, code: string, retryAfterSecs: number | undefined, arrived: number]>([
    ['429', status(429), 'rate_limited', undefined, 0],
    ['429 with a header', status(429, {}, { 'retry-after': '30' }), 'rate_limited', 30, 0],
    ['429 with a time to come back', status(429, refusal(429, 'Too Many Requests', { retry_after: 12 })), 'rate_limited', 12, 0],
    ['500', status(500, refusal(500, 'Internal Server Error')), 'unavailable', undefined, 0],
    ['502', status(502), 'upstream', undefined, 0],
    ['503', status(503), 'upstream', undefined, 0],
    ['400', status(400, refusal(400, 'Bad Request: chat not found')), 'invalid_request', undefined, 0],
    ['403', status(403, refusal(403, 'Forbidden: bot was kicked from the group chat')), 'forbidden', undefined, 0],
    ['a bad token', status(401, refusal(401, 'Unauthorized')), 'unavailable', undefined, 0],
    ['a token cut short', status(404, refusal(404, 'Not Found')), 'unavailable', undefined, 0],
    ['404 of something else', status(404), 'invalid_request', undefined, 0],
    ['a reset before', { fault: 'reset' }, 'upstream', undefined, 0],
    ['a reset after', { fault: 'lost' }, 'upstream', undefined, 1],
    ['JSON cut in the middle', { fault: 'cut' }, 'upstream', undefined, 1],
    ['garbage', { fault: 'garbage' }, 'upstream', undefined, 1],
    ['an answer without an id', status(200, { ok: true, result: {} }), 'upstream', undefined, 0],
    ['an answer that says nothing', status(200, {}), 'upstream', undefined, 0],
    ['an answer of more than 1 MiB', { fault: 'status', status: 200, body: 'x'.repeat(1_048_577) }, 'upstream', undefined, 0],
  ])('%s', async (_name, fault, code, retryAfterSecs, arrived) => {
    bench.fake.fail(fault)
    const { channel, host } = bench.channel()
    const error = await send(channel)
    expect(error).toBeInstanceOf(AppError)
    expect(error).toMatchObject({ code, retryAfterSecs })
    expect([bench.fake.sent().length, bench.fake.requests.length]).toEqual([arrived, 1])
    const { message, stack, cause } = error as AppError
    expect(JSON.stringify([host.logs, message, stack, cause])).not.toContain(TELEGRAM_TOKEN.slice(7))
  })

  test('a refusal is told in the platform’s words', async () => {
    bench.fake.block(TELEGRAM_GROUP)
    expect(await send()).toMatchObject({ code: 'forbidden', message: 'telegram answered 403: Forbidden: bot was blocked by the user' })
    expect(await send(undefined, '-1')).toMatchObject({ message: 'telegram answered 400: Bad Request: chat not found' })
  })

  test('a burst of failures ends with the message there once', async () => {
    bench.fake.fail(status(429), { times: 3 })
    const outcomes: unknown[] = []
    for (let tries = 0; tries < 4; tries++) outcomes.push(await send())
    expect(outcomes.at(-1)).toMatchObject({ id: expect.stringMatching(/^-100200:\d+$/) })
    expect(bench.fake.sent()).toHaveLength(1)
  })

  test('an answer that takes its time is waited for', async () => {
    bench.fake.fail({ fault: 'slow', ms: 1 })
    expect(await send()).toMatchObject({ id: expect.any(String) })
  })

  test('an answer that never comes ends with the abort, and may have been sent', async () => {
    const { channel } = bench.channel()
    expect(await outcome(channel.send({ to: GROUP }, hello, abortedOnArrival(bench.fake)))).toMatchObject({ code: 'aborted' })
  })

  test('a server that is not there was not sent to', async () => {
    const { channel } = bench.channel()
    await bench.fake.close()
    expect(await send(channel)).toMatchObject({ code: 'unavailable' })
  })

  test('when something was sent is known without asking', async () => {
    const { channel, host } = bench.channel()
    expect(channel.health?.()).toEqual({ state: 'connecting' })
    await send(channel)
    expect(channel.health?.()).toEqual({ state: 'connecting', lastSentAtMs: host.clock.nowMs() })
  })
})

describe('redirects', () => {
  let elsewhere: FakeProvider
  beforeEach(async () => {
    elsewhere = await startFakeProvider(() => ({ status: 200, body: { ok: true, result: { message_id: 1 } } }))
  })
  afterEach(() => elsewhere.close())

  test('are not followed, so that the token gets nowhere', async () => {
    for (const code of [302, 307, 308]) {
      bench.fake.fail(status(code, {}, { location: `${elsewhere.url}/x` }))
      expect(await send()).toMatchObject({ code: 'invalid_request' })
    }
    const id = bench.fake.file(new Uint8Array(1), 'photos/1.jpg')
    bench.fake.fail(status(302, {}, { location: elsewhere.url }), { matches: ({ path }) => path.startsWith('/file/') })
    const media = { kind: 'image' as const, name: 'a', source: { id } }
    expect(await outcome(bench.channel().channel.fetchMedia?.(media, { bytesMax: 10, signal }))).toMatchObject({ code: 'invalid_request' })
    expect(elsewhere.requests).toEqual([])
  })
})
