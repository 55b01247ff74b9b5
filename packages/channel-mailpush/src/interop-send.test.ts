import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Address, AppError } from '@sluice/sdk'
import type { ProviderFault } from '@sluice/testkit/fake-provider'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Bench, SECRETS, startBench } from './testing/bench.ts'

const REFRESH = { client_id: 'client-01', client_secret: 'client-secret-01', refresh_token: 'refresh-token-01' }
const NEVER = new AbortController().signal

let bench: Bench
let to: Address
beforeEach(async () => {
  bench = await startBench()
  const { threadId } = bench.fake.receive({ from: 'ada@example.com', subject: 'Héllo', text: 'hi' })
  to = {
    to: 'ada@example.com',
    thread: threadId,
    replyTo: '<1@x>',
    more: { subject: 'Héllo', from: 'bot@example.com', references: '<1@x>' },
  }
})
afterEach(() => bench.close())

/** Sends; what came of it, an error included. */
const send = async (
  config: object = {},
  address: Address = to,
  signal = NEVER,
): Promise<{ id?: string; code?: string; message?: string }> => {
  const { channel, host } = bench.channel(config)
  const outcome = await channel
    .send(address, { text: 'good → day\n.\n', clientId: 'c1' }, signal)
    .catch((error: unknown) => error as AppError)
  for (const secret of SECRETS)
    expect(`${JSON.stringify(host.logs)} ${outcome instanceof AppError && outcome.message}`).not.toContain(secret)
  return outcome
}

test('a reply goes out in the thread of the mail it answers', async () => {
  const { id } = await send()
  const [sent] = bench.fake.sent
  expect(bench.fake.mailbox.mails.get(id ?? '')?.threadId).toBe(to.thread)
  expect(sent).toMatchObject({ threadId: to.thread, text: 'good → day\n.\n' })
  expect(sent?.headers.get('subject')).toBe('=?utf-8?B?UmU6IEjDqWxsbw==?=')
  expect(sent?.headers.get('in-reply-to')).toBe('<1@x>')
})

test('a mail nobody asked for has a thread of its own', async () => {
  await send({}, { to: 'ada@example.com' })
  expect(bench.fake.sent[0]).toMatchObject({ threadId: undefined })
})

describe('what the outbox is told', () => {
  const rateLimited = { error: { code: 403, message: 'Quota exceeded', errors: [{ reason: 'rateLimitExceeded' }] } }
  test.each<[fault: ProviderFault, code: string]>([
    [{ fault: 'status', status: 429, headers: { 'retry-after': '7' } }, 'rate_limited'],
    [{ fault: 'status', status: 429 }, 'rate_limited'],
    [{ fault: 'status', status: 403, body: rateLimited }, 'rate_limited'],
    [{ fault: 'status', status: 403, body: { error: { message: 'Insufficient Permission' } } }, 'forbidden'],
    [{ fault: 'status', status: 400 }, 'invalid_request'],
    [{ fault: 'status', status: 500 }, 'upstream'],
    [{ fault: 'status', status: 502 }, 'upstream'],
    [{ fault: 'status', status: 503 }, 'upstream'],
    [{ fault: 'status', status: 503, headers: { 'retry-after': '3' } }, 'unavailable'],
    [{ fault: 'status', status: 200, body: {} }, 'upstream'],
    [{ fault: 'garbage' }, 'upstream'],
    [{ fault: 'cut' }, 'upstream'],
    [{ fault: 'lost' }, 'upstream'],
    [{ fault: 'reset' }, 'upstream'],
  ])('%j is %s', async (fault, code) => {
    bench.fake.fail(fault)
    expect(await send()).toMatchObject({ code })
  })

  test('an oversize answer may be anything', async () => {
    bench.fake.fail({ fault: 'status', status: 200, body: `"${'x'.repeat(1_100_000)}"` })
    expect(await send()).toMatchObject({ code: 'upstream' })
  })

  test('a slow answer is an answer', async () => {
    bench.fake.fail({ fault: 'slow', ms: 2 })
    expect(await send()).toMatchObject({ id: expect.stringMatching(/^m/) })
  })

  test('no answer is cut off with the send', async () => {
    bench.fake.fail({ fault: 'hang' })
    const abort = new AbortController()
    const sending = send({}, to, abort.signal)
    await expect.poll(() => bench.asked('POST /messages/send'), { interval: 2 }).toBe(1)
    abort.abort()
    expect(await sending).toMatchObject({ code: 'aborted' })
  })

  test('nobody there is not sent', async () => {
    const gone = createServer()
    await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve))
    const { port } = gone.address() as AddressInfo
    await new Promise((resolve) => gone.close(resolve))
    expect(await send({ api_url: `http://127.0.0.1:${port}/` })).toMatchObject({ code: 'unavailable' })
  })

  test('a thread that is gone is refused for good', async () => {
    expect(await send({}, { ...to, thread: 'gone' })).toMatchObject({ code: 'invalid_request' })
  })

  test.each(['', 'ada', 'ada@example.com\r\nBcc: x@evil.test'])('%j cannot be written to, and nothing is asked', async (address) => {
    expect(await send({}, { ...to, to: address })).toMatchObject({ code: 'invalid_request' })
    expect(bench.fake.requests).toEqual([])
  })
})

describe('the access token', () => {
  test('that expired is renewed, and the mail goes out once', async () => {
    bench.fake.expireTokens()
    expect(await send(REFRESH)).toHaveProperty('id')
    expect(bench.fake.sent).toHaveLength(1)
  })

  test('is asked for once, however many wait for it', async () => {
    bench.fake.expireTokens()
    const { channel } = bench.channel(REFRESH)
    const sends = Array.from({ length: 10 }, (_, at) => channel.send(to, { text: 'hi', clientId: `c${at}` }, NEVER))
    await Promise.all(sends)
    expect(bench.fake.sent).toHaveLength(10)
    expect(bench.asked('POST /token')).toBe(1)
  })

  test('that another send has renewed meanwhile is not asked for again', async () => {
    bench.fake.expireTokens()
    const { channel } = bench.channel(REFRESH)
    bench.fake.fail({ fault: 'slow', ms: 5 })
    const slow = channel.send(to, { text: 'hi', clientId: 'c1' }, NEVER)
    await expect.poll(() => bench.asked('POST /messages/send'), { interval: 1 }).toBe(1)
    await channel.send(to, { text: 'hi', clientId: 'c2' }, NEVER)
    expect(await slow).toHaveProperty('id')
    expect(bench.asked('POST /token')).toBe(1)
  })

  test.each<[what: string, config: object]>([
    ['expired, with none to be had', {}],
    ['expired, with a refresh token that is no longer good', { ...REFRESH, refresh_token: 'other' }],
    ['expired, with a client nobody knows', { ...REFRESH, client_secret: 'other' }],
    ['not configured', { oauth_token: undefined }],
    ['white space', { oauth_token: ' ' }],
  ])('that is %s is mended by the operator: nothing was sent', async (_, config) => {
    bench.fake.expireTokens()
    expect(await send(config)).toMatchObject({ code: 'unavailable' })
    expect(bench.fake.sent).toEqual([])
  })

  test.each<ProviderFault>([
    { fault: 'status', status: 500 },
    { fault: 'garbage' },
    { fault: 'lost' },
    { fault: 'status', status: 200, body: {} },
  ])('that cannot be renewed now, %j, leaves the mail unsent', async (fault) => {
    bench.fake.expireTokens()
    bench.fake.fail(fault, { matches: ({ path }) => path === '/token' })
    expect(await send(REFRESH)).toMatchObject({ code: 'unavailable' })
  })

  test('never follows a redirect to another host', async () => {
    const seen: unknown[] = []
    const stranger = createServer((request, response) => {
      seen.push(request.headers)
      response.end('{"id":"m1"}')
    })
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve))
    const location = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}/`
    for (const status of [301, 302, 303, 307, 308]) {
      bench.fake.fail({ fault: 'status', status, headers: { location } })
      expect(await send()).toMatchObject({ code: 'invalid_request' })
    }
    await new Promise((resolve) => stranger.close(resolve))
    expect(seen).toEqual([])
  })
})

describe('attachments', () => {
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, at) => at % 256))
  const fetchIt = (id: string, bytesMax = 1_000_000) => {
    const { channel } = bench.channel()
    return channel.fetchMedia?.({ kind: 'image', name: 'x.png', mime: 'image/png', source: { id } }, { bytesMax, signal: NEVER })
  }
  const receive = () => {
    const { id } = bench.fake.receive({ from: 'ada@example.com', text: 'see', attachments: [{ name: 'x.png', mime: 'image/png', bytes }] })
    return `${id}/ANGjdJ-${id}-0`
  }

  test('come with the ids they are fetched by', async () => {
    const one = bench.run()
    await one.until(() => one.channel.health?.().state === 'ok')
    const id = receive()
    await one.push()
    await one.until(() => one.delivered.length === 1)
    expect(one.delivered[0]?.attachments).toEqual([{ kind: 'image', name: 'x.png', mime: 'image/png', source: { id } }])
    expect(await fetchIt(id, bytes.length)).toEqual({ bytes, mime: 'image/png' })
  })

  test('that are too large are refused for good', async () => {
    await expect(fetchIt(receive(), bytes.length - 1)).rejects.toMatchObject({ code: 'too_large' })
    await expect(fetchIt(receive(), 10)).rejects.toMatchObject({ code: 'too_large' })
  })

  test.each<ProviderFault>([
    { fault: 'status', status: 500 },
    { fault: 'status', status: 429, headers: { 'retry-after': '7' } },
    { fault: 'cut' },
    { fault: 'reset' },
  ])('that cannot be had now, %j, may be had later', async (fault) => {
    bench.fake.fail(fault)
    await expect(fetchIt(receive())).rejects.toMatchObject({ code: 'unavailable' })
  })

  test.each(['m1/gone', 'gone', '', 'https://evil.test/x'])('with the id %j never can', async (id) => {
    await expect(fetchIt(id)).rejects.toMatchObject({ code: 'invalid_request' })
  })
})
