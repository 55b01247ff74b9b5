import { AppError } from '@sluice/sdk'
import type { ProviderFault } from '@sluice/testkit/fake-provider'
import { afterEach, describe, expect, test } from 'vitest'
import { type Bench, type Run, startBench } from './testing/bench.ts'

const HOUR_MS = 3_600_000
const ada = (subject: string) => ({ from: 'ada@example.com', subject, text: 'hi' })
const REFRESH = { client_id: 'client-01', client_secret: 'client-secret-01', refresh_token: 'refresh-token-01' }

let bench: Bench
/** Starts a channel and waits until it has checked its mailbox once. */
const start = async (options: Parameters<Bench['run']>[0] = {}): Promise<Bench & { one: Run }> => {
  bench = await startBench()
  const one = bench.run(options)
  await one.until(() => one.health().state === 'ok' && one.host.clock.sleeping > 0)
  return { ...bench, one }
}
afterEach(() => bench.close())

describe('checks of the mailbox', () => {
  test('happen once more after any number of pushes during a check', async () => {
    const stopped = Promise.withResolvers<void>()
    const { one, fake, requestCount } = await start({ deliver: () => stopped.promise })
    fake.receive(ada('1'))
    await one.push()
    await one.until(() => one.delivered.length === 1)
    const before = requestCount('GET /history')
    fake.receive(ada('2'))
    for (let count = 0; count < 20; count++) await one.push()
    await one.until(() => true)
    expect(requestCount('GET /history')).toBe(before)
    stopped.resolve()
    await one.until(() => one.delivered.length === 2 && one.host.clock.sleeping > 0)
    expect(requestCount('GET /history')).toBe(before + 1)
  })

  test('happen every five minutes without pushes', async () => {
    const { one, fake } = await start()
    fake.receive(ada('1'))
    await one.host.advance(299_000)
    expect(one.delivered).toEqual([])
    await one.host.advance(1000)
    await one.until(() => one.delivered.length === 1)
  })

  test('start later when a push arrives before listen', async () => {
    bench = await startBench()
    const { channel } = bench.channel()
    const push = { headers: {}, url: new URL('http://localhost/'), body: new TextEncoder().encode(bench.fake.push()), receivedAtMs: 0 }
    expect(await channel.webhook?.parse(push)).toEqual([])
  })
})

describe('the subscription', () => {
  test('is renewed every day', async () => {
    const { one, fake } = await start()
    for (const day of [1, 2]) {
      await one.until(() => fake.watches.length === 1 + day, 300_000)
      expect(Math.abs(one.host.clock.monotonicMs() - day * 24 * HOUR_MS)).toBeLessThan(HOUR_MS)
    }
  })

  test('is retried with delays after a failure, while mails still arrive', async () => {
    const { one, fake, requestCount } = await start()
    const refused = { error: { code: 403, message: 'User not authorized to perform this action.', errors: [{ reason: 'forbidden' }] } }
    fake.fail({ fault: 'status', status: 403, body: refused }, { times: 5, matches: ({ path }) => path.endsWith('/watch') })
    await one.until(() => one.health().state === 'down', 300_000)
    expect(one.health().detail).toBe('mailpush answered 403: User not authorized to perform this action.')
    fake.receive(ada('1'))
    await one.push()
    await one.until(() => one.delivered.length === 1)
    expect(one.health().state).toBe('down')
    await one.until(() => one.health().state === 'ok', 60_000)
    expect(requestCount('POST /watch')).toBe(1 + 5 + 1)
  })

  test('is retried until it succeeds for the first time', async () => {
    bench = await startBench()
    bench.fake.fail({ fault: 'status', status: 400 }, { times: 3, matches: ({ path }) => path.endsWith('/watch') })
    const one = bench.run()
    await one.until(() => one.health().state === 'down')
    await one.until(() => one.health().state === 'ok', 500)
    bench.fake.receive(ada('1'))
    await one.push()
    await one.until(() => one.delivered.length === 1)
  })
})

describe('a rejected subscription', () => {
  const refuse = (message: string, times: number) => {
    const body = { error: { code: 403, message, errors: [{ reason: 'forbidden' }] } }
    bench.fake.fail({ fault: 'status', status: 403, body }, { times, matches: ({ path }) => path.endsWith('/watch') })
  }

  test('is logged once for each reason', async () => {
    bench = await startBench()
    for (const message of ['one', 'two', 'one', 'two']) refuse(message, 3)
    const one = bench.run()
    const logged = () => one.host.logs.filter(({ message }) => /subscri/.test(message)).map(({ level, fields }) => [level, fields.error])
    await one.until(() => one.health().state === 'ok', 60_000)
    expect(bench.requestCount('POST /watch')).toBe(13)
    const warnings = ['one', 'two'].map((message) => ['warn', expect.objectContaining({ message: `mailpush answered 403: ${message}` })])
    expect(logged()).toEqual([...warnings, ['info', undefined]])
    refuse('one', 2)
    await one.until(() => one.health().state === 'down', 300_000)
    expect(logged().slice(3)).toEqual(warnings.slice(0, 1))
  })

  test('does not stop mails from the first start on, and health has the reason', async () => {
    bench = await startBench()
    refuse('no', 10_000)
    bench.fake.receive(ada('from before'))
    const one = bench.run()
    await one.until(() => one.health().state === 'down' && one.host.clock.sleeping > 0)
    bench.fake.receive(ada('1'))
    await one.until(() => one.delivered.length > 0, 10_000)
    expect(one.delivered.map(({ text }) => text)).toEqual(['Subject: 1\n\nhi'])
    expect(one.health()).toMatchObject({ state: 'down', detail: 'mailpush answered 403: no' })
  })

  test('does not stop reading after the history has expired', async () => {
    const { one, fake } = await start()
    await one.stop()
    refuse('no', 10_000)
    fake.receive(ada('1'))
    fake.mailbox.forget()
    const two = bench.run()
    await two.until(() => two.delivered.length === 1)
    fake.receive(ada('2'))
    await two.until(() => two.delivered.length === 2, 10_000)
    expect(two.health().detail).toBe('mailpush answered 403: no')
  })
})

describe('the access token', () => {
  test('is renewed once in the middle of a batch, without lost or repeated mails', async () => {
    let expire = true
    const { one, fake, requestCount } = await start({
      config: REFRESH,
      async deliver() {
        if (expire) bench.fake.expireTokens()
        expire = false
      },
    })
    for (const subject of ['1', '2', '3', '4']) fake.receive(ada(subject))
    await one.push()
    await one.until(() => one.delivered.length === 4)
    expect(one.ids()).toHaveLength(new Set(one.ids()).size)
    expect(requestCount('POST /token')).toBe(1)
  })

  test('is renewed before it expires, also without oauth_token', async () => {
    const { one, requestCount } = await start({ config: { ...REFRESH, oauth_token: undefined } })
    expect(requestCount('POST /token')).toBe(1)
    for (let minutes = 0; minutes < 60; minutes += 5) {
      await one.host.advance(300_000)
      await one.until(() => one.host.clock.sleeping > 0)
    }
    expect(requestCount('POST /token')).toBe(2)
    expect(one.health().state).toBe('ok')
  })

  test('that expired and cannot be renewed shows in health until the operator sets another', async () => {
    const { one, fake } = await start()
    fake.receive(ada('1'))
    fake.expireTokens()
    await one.push()
    await one.until(() => one.health().state === 'down')
    expect(one.health().detail).toBe('mailpush answered 401 (is oauth_token valid?)')
    await one.stop()
    const two = bench.run({ config: REFRESH })
    await two.until(() => two.delivered.length === 1)
  })

  test.each<[why: string, config: object, detail: RegExp]>([
    ['is not configured', { oauth_token: undefined }, /^mailpush has no access token/],
    [
      'has a revoked refresh token',
      { ...REFRESH, oauth_token: undefined, refresh_token: 'other' },
      /invalid_grant: Token has been expired/,
    ],
    [
      'has an unreachable token endpoint',
      { ...REFRESH, oauth_token: undefined, token_url: 'http://127.0.0.1:1/' },
      /the token endpoint of mailpush/,
    ],
  ])('that %s shows in health with the reason', async (_, config, detail) => {
    bench = await startBench()
    const one = bench.run({ config })
    await one.until(() => one.health().state === 'down')
    expect(one.health().detail).toMatch(detail)
  })
})

describe('faults on the wire', () => {
  const rateLimited = { error: { code: 403, message: 'User-rate limit exceeded.', errors: [{ reason: 'userRateLimitExceeded' }] } }
  test.each<[what: string, fault: ProviderFault, times: number]>([
    ['429 with Retry-After', { fault: 'status', status: 429, headers: { 'retry-after': '7' } }, 1],
    ['429', { fault: 'status', status: 429 }, 3],
    ['a rate limit as 403', { fault: 'status', status: 403, body: rateLimited }, 2],
    ['500', { fault: 'status', status: 500 }, 4],
    ['502', { fault: 'status', status: 502, body: '<html>' }, 3],
    ['503 with Retry-After', { fault: 'status', status: 503, headers: { 'retry-after': '2' } }, 2],
    ['an answer of another shape', { fault: 'status', status: 200, body: [] }, 2],
    ['an oversize answer', { fault: 'status', status: 200, body: `"${'x'.repeat(1_100_000)}"` }, 2],
    ['a redirect', { fault: 'status', status: 302, headers: { location: 'http://127.0.0.1:9/' } }, 2],
    ['a garbled answer', { fault: 'garbage' }, 2],
    ['a truncated answer', { fault: 'cut' }, 2],
    ['a reset after the request', { fault: 'lost' }, 2],
    ['a reset before the request', { fault: 'reset' }, 2],
    ['a slow body', { fault: 'slow', ms: 1 }, 3],
  ])('every mail arrives after %s', async (_, fault, times) => {
    const { one, fake } = await start()
    for (const path of ['/history', '/messages/']) fake.fail(fault, { times, matches: (request) => request.path.includes(path) })
    for (const subject of ['1', '2', '3']) fake.receive(ada(subject))
    await one.push()
    await one.until(() => new Set(one.ids()).size === 3 && one.health().state === 'ok', 1000)
  })

  test('Retry-After is respected, also when pushes arrive', async () => {
    const { one, fake, requestCount } = await start()
    fake.fail({ fault: 'status', status: 429, headers: { 'retry-after': '60' } }, { matches: ({ path }) => path.endsWith('/history') })
    fake.receive(ada('1'))
    await one.push()
    await one.until(() => one.health().state === 'connecting')
    const before = requestCount('GET /history')
    await one.host.advance(59_000)
    await one.push()
    await one.host.advance(900)
    expect(requestCount('GET /history')).toBe(before)
    await one.until(() => one.delivered.length === 1, 1000)
  })

  test('a push ends a delay that the API did not ask for', async () => {
    const { one, fake, requestCount } = await start()
    const before = requestCount('GET /history')
    fake.fail({ fault: 'status', status: 500 }, { times: 9, matches: ({ path }) => path.endsWith('/history') })
    fake.receive(ada('1'))
    await one.push()
    await one.until(() => requestCount('GET /history') === before + 9 && one.host.clock.sleeping > 0, 5000)
    await one.host.advance(1000)
    await one.push()
    await one.until(() => one.delivered.length === 1)
  })

  test('pushes repeat a failing request at most once a second', async () => {
    const { one, fake, requestCount } = await start()
    fake.fail({ fault: 'status', status: 500 }, { times: 1000, matches: ({ path }) => path.endsWith('/history') })
    const before = requestCount('GET /history')
    for (let count = 0; count < 100; count++) {
      await one.push()
      await one.until(() => one.host.clock.sleeping > 0)
      await one.host.advance(100)
    }
    expect(requestCount('GET /history') - before).toBeGreaterThan(5)
    expect(requestCount('GET /history') - before).toBeLessThan(14)
  })

  test('delays grow with the outage', async () => {
    const { one, fake, requestCount } = await start()
    fake.fail({ fault: 'status', status: 500 }, { times: 1000, matches: ({ path }) => path.endsWith('/history') })
    await one.push()
    await one.until(() => one.health().state === 'down', 1000)
    await one.until(() => one.host.clock.monotonicMs() >= HOUR_MS, 5000)
    expect(requestCount('GET /history')).toBeGreaterThan(20)
    expect(requestCount('GET /history')).toBeLessThan(60)
  })
})

test.each<[where: string, path: string]>([
  ['its first request', '/profile'],
  ['a listing', '/history'],
  ['the subscription', '/watch'],
])('listen ends soon after its abort during %s', async (_, path) => {
  bench = await startBench()
  bench.fake.fail({ fault: 'hang' }, { matches: (request) => request.path.endsWith(path) })
  const one = bench.run()
  await one.until(() => bench.fake.requests.some((request) => request.path.endsWith(path)))
  await one.stop()
})

test('listen ends soon after its abort during a token request or a delay', async () => {
  bench = await startBench()
  bench.fake.fail({ fault: 'hang' }, { matches: ({ path }) => path === '/token' })
  const one = bench.run({ config: { ...REFRESH, oauth_token: undefined } })
  await one.until(() => bench.requestCount('POST /token') === 1)
  await one.stop()
  const two = bench.run({ config: { oauth_token: undefined } })
  await two.until(() => two.health().state === 'down')
  await two.stop()
})

test('rejects a first push that cannot be stored, so that it is sent again', async () => {
  bench = await startBench()
  const { channel, host } = bench.channel()
  host.keyValue.set = async () => {
    throw new AppError('unavailable', 'the disk is full')
  }
  const push = { headers: {}, url: new URL('http://localhost/'), body: new TextEncoder().encode(bench.fake.push()), receivedAtMs: 0 }
  await expect(channel.webhook?.parse(push)).rejects.toMatchObject({ code: 'unavailable' })
})
