import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { decodeWords } from '@sluice/mail-common/reading'
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

/** Sends a mail. Returns the outcome or the error. */
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

test('sends a reply in the thread of the mail', async () => {
  const { id } = await send()
  const [sent] = bench.fake.sent
  expect(bench.fake.mailbox.mails.get(id ?? '')?.threadId).toBe(to.thread)
  expect(sent).toMatchObject({ threadId: to.thread, text: 'good → day\n.\n' })
  expect(sent?.headers.get('subject')).toMatch(/^=\?utf-8\?/i)
  expect(decodeWords(sent?.headers.get('subject') ?? '')).toBe('Re: Héllo')
  expect(sent?.headers.get('in-reply-to')).toBe('<1@x>')
})

test('sends a mail without a thread in a new one', async () => {
  await send({}, { to: 'ada@example.com' })
  expect(bench.fake.sent[0]).toMatchObject({ threadId: undefined })
})

describe('faults on the wire', () => {
  const rateLimited = { error: { code: 403, message: 'Quota exceeded', errors: [{ reason: 'rateLimitExceeded' }] } }
  test.each<[fault: ProviderFault, code: string]>([
    [{ fault: 'status', status: 429, headers: { 'retry-after': '7' } }, 'rate_limited'],
    [{ fault: 'status', status: 429 }, 'rate_limited'],
    [{ fault: 'status', status: 403, body: rateLimited }, 'rate_limited'],
    [{ fault: 'status', status: 403, body: { error: { message: 'Insufficient Permission' } } }, 'forbidden'],
    [{ fault: 'status', status: 400 }, 'invalid_request'],
    [{ fault: 'status', status: 500 }, 'upstream'],
    [{ fault: 'status', status: 502 }, 'upstream'],
    [{ fault: 'status', status: 503 }, 'unavailable'],
    [{ fault: 'status', status: 503, headers: { 'retry-after': '3' } }, 'unavailable'],
    [{ fault: 'status', status: 200, body: {} }, 'upstream'],
    [{ fault: 'garbage' }, 'upstream'],
    [{ fault: 'cut' }, 'upstream'],
    [{ fault: 'lost' }, 'upstream'],
    [{ fault: 'reset' }, 'upstream'],
  ])('%j is reported as %s', async (fault, code) => {
    bench.fake.fail(fault)
    expect(await send()).toMatchObject({ code })
  })

  test('an oversize answer is reported as upstream', async () => {
    bench.fake.fail({ fault: 'status', status: 200, body: `"${'x'.repeat(1_100_000)}"` })
    expect(await send()).toMatchObject({ code: 'upstream' })
  })

  test('a slow answer succeeds', async () => {
    bench.fake.fail({ fault: 'slow', ms: 2 })
    expect(await send()).toMatchObject({ id: expect.stringMatching(/^m/) })
  })

  test('a missing answer is reported as aborted after an abort', async () => {
    bench.fake.fail({ fault: 'hang' })
    const abort = new AbortController()
    const sending = send({}, to, abort.signal)
    await expect.poll(() => bench.requestCount('POST /messages/send'), { interval: 2 }).toBe(1)
    abort.abort()
    expect(await sending).toMatchObject({ code: 'aborted' })
  })

  test('a refused connection is reported as unavailable', async () => {
    const gone = createServer()
    await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve))
    const { port } = gone.address() as AddressInfo
    await new Promise((resolve) => gone.close(resolve))
    expect(await send({ api_url: `http://127.0.0.1:${port}/` })).toMatchObject({ code: 'unavailable' })
  })

  test('a deleted thread is reported as invalid_request', async () => {
    expect(await send({}, { ...to, thread: 'gone' })).toMatchObject({ code: 'invalid_request' })
  })

  test.each(['', 'ada', 'ada@example.com\r\nBcc: x@evil.test'])('the recipient %j is rejected without a request', async (address) => {
    expect(await send({}, { ...to, to: address })).toMatchObject({ code: 'invalid_request' })
    expect(bench.fake.requests).toEqual([])
  })
})

describe('the access token', () => {
  test('is renewed after it expired, and the mail is sent once', async () => {
    bench.fake.expireTokens()
    expect(await send(REFRESH)).toHaveProperty('id')
    expect(bench.fake.sent).toHaveLength(1)
  })

  test('is requested once for concurrent sends', async () => {
    bench.fake.expireTokens()
    const { channel } = bench.channel(REFRESH)
    const sends = Array.from({ length: 10 }, (_, at) => channel.send(to, { text: 'hi', clientId: `c${at}` }, NEVER))
    await Promise.all(sends)
    expect(bench.fake.sent).toHaveLength(10)
    expect(bench.requestCount('POST /token')).toBe(1)
  })

  test('is not requested again when another send has renewed it', async () => {
    bench.fake.expireTokens()
    const { channel } = bench.channel(REFRESH)
    bench.fake.fail({ fault: 'slow', ms: 5 })
    const slow = channel.send(to, { text: 'hi', clientId: 'c1' }, NEVER)
    await expect.poll(() => bench.requestCount('POST /messages/send'), { interval: 1 }).toBe(1)
    await channel.send(to, { text: 'hi', clientId: 'c2' }, NEVER)
    expect(await slow).toHaveProperty('id')
    expect(bench.requestCount('POST /token')).toBe(1)
  })

  test.each<[what: string, config: object]>([
    ['expired, without a refresh token', {}],
    ['expired, with a revoked refresh token', { ...REFRESH, refresh_token: 'other' }],
    ['expired, with an unknown client', { ...REFRESH, client_secret: 'other' }],
    ['not configured', { oauth_token: undefined }],
    ['white space', { oauth_token: ' ' }],
  ])('that is %s makes the send unavailable', async (_, config) => {
    bench.fake.expireTokens()
    expect(await send(config)).toMatchObject({ code: 'unavailable' })
    expect(bench.fake.sent).toEqual([])
  })

  test.each<ProviderFault>([
    { fault: 'status', status: 500 },
    { fault: 'garbage' },
    { fault: 'lost' },
    { fault: 'status', status: 200, body: {} },
  ])('that cannot be renewed because of %j makes the send unavailable', async (fault) => {
    bench.fake.expireTokens()
    bench.fake.fail(fault, { matches: ({ path }) => path === '/token' })
    expect(await send(REFRESH)).toMatchObject({ code: 'unavailable' })
  })

  test('is not sent to another host by a redirect', async () => {
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
  const fetchAttachment = (id: string, bytesMax = 1_000_000) => {
    const { channel } = bench.channel()
    return channel.fetchMedia?.({ kind: 'image', name: 'x.png', mime: 'image/png', source: { id } }, { bytesMax, signal: NEVER })
  }
  const receive = () => {
    const { id } = bench.fake.receive({ from: 'ada@example.com', text: 'see', attachments: [{ name: 'x.png', mime: 'image/png', bytes }] })
    return `${id}/ANGjdJ-${id}-0`
  }

  test('are delivered with ids that fetchMedia accepts', async () => {
    const one = bench.run()
    await one.until(() => one.health().state === 'ok')
    const id = receive()
    await one.push()
    await one.until(() => one.delivered.length === 1)
    expect(one.delivered[0]?.attachments).toEqual([{ kind: 'image', name: 'x.png', mime: 'image/png', source: { id } }])
    expect(await fetchAttachment(id, bytes.length)).toEqual({ bytes, mime: 'image/png' })
  })

  test('beyond the limit are too_large', async () => {
    await expect(fetchAttachment(receive(), bytes.length - 1)).rejects.toMatchObject({ code: 'too_large' })
    await expect(fetchAttachment(receive(), 10)).rejects.toMatchObject({ code: 'too_large' })
  })

  test.each<ProviderFault>([
    { fault: 'status', status: 500 },
    { fault: 'status', status: 429, headers: { 'retry-after': '7' } },
    { fault: 'cut' },
    { fault: 'reset' },
  ])('that fail with %j are unavailable', async (fault) => {
    bench.fake.fail(fault)
    await expect(fetchAttachment(receive())).rejects.toMatchObject({ code: 'unavailable' })
  })

  test.each(['m1/gone', 'gone', '', 'https://evil.test/x'])('with the id %j are invalid_request', async (id) => {
    await expect(fetchAttachment(id)).rejects.toMatchObject({ code: 'invalid_request' })
  })
})
