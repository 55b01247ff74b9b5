import { AppError } from '@sluice/sdk'
import type { ProviderFault } from '@sluice/testkit/fake-provider'
import { within } from '@sluice/testkit/within'
import { afterEach, describe, expect, test } from 'vitest'
import { type Bench, type Run, startBench } from './testing/bench.ts'

const HOUR_MS = 3_600_000
const ada = (subject: string) => ({ from: 'ada@example.com', subject, text: 'hi' })
const REFRESH = { client_id: 'client-01', client_secret: 'client-secret-01', refresh_token: 'refresh-token-01' }

let bench: Bench
/** A channel that has looked at its mailbox once, and rests. */
const start = async (options: Parameters<Bench['run']>[0] = {}): Promise<Bench & { one: Run }> => {
  bench = await startBench()
  const one = bench.run(options)
  await one.until(() => one.channel.health?.().state === 'ok' && one.host.clock.sleeping > 0)
  return { ...bench, one }
}
afterEach(() => bench.close())

describe('when the mailbox is looked at', () => {
  test('pushes during a look lead to one more, however many they are', async () => {
    const stopped = Promise.withResolvers<void>()
    const { one, fake, asked } = await start({ deliver: () => stopped.promise })
    fake.receive(ada('1'))
    await one.push()
    await one.until(() => one.delivered.length === 1)
    const before = asked('GET /history')
    fake.receive(ada('2'))
    for (let count = 0; count < 20; count++) await one.push()
    await one.until(() => true)
    expect(asked('GET /history')).toBe(before)
    stopped.resolve()
    await one.until(() => one.delivered.length === 2 && one.host.clock.sleeping > 0)
    expect(asked('GET /history')).toBe(before + 1)
  })

  test('without any push it is looked at every five minutes', async () => {
    const { one, fake } = await start()
    fake.receive(ada('1'))
    await one.host.advance(299_000)
    expect(one.delivered).toEqual([])
    await one.host.advance(1000)
    await one.until(() => one.delivered.length === 1)
  })

  test('a push that comes before anybody listens is no loss', async () => {
    bench = await startBench()
    const { channel } = bench.channel()
    const push = { headers: {}, url: new URL('http://localhost/'), body: new TextEncoder().encode(bench.fake.push()), receivedAtMs: 0 }
    expect(await channel.webhook?.parse(push)).toEqual([])
    expect(channel.health?.()).toEqual({ state: 'connecting' })
  })
})

describe('§8 the subscription', () => {
  test('is renewed every day, well before its seven are over', async () => {
    const { one, fake } = await start()
    for (const day of [1, 2, 3]) {
      await one.until(() => fake.watches.length === 1 + day, 300_000)
      expect(Math.abs(one.host.clock.monotonicMs() - day * 24 * HOUR_MS)).toBeLessThan(HOUR_MS)
    }
  })

  test('that cannot be renewed is down, tried again with pauses, and mails come all the same', async () => {
    const { one, fake, asked } = await start()
    const refused = { error: { code: 403, message: 'User not authorized to perform this action.', errors: [{ reason: 'forbidden' }] } }
    fake.fail({ fault: 'status', status: 403, body: refused }, { times: 5, matches: ({ path }) => path.endsWith('/watch') })
    await one.until(() => one.channel.health?.().state === 'down', 300_000)
    expect(one.channel.health?.().detail).toBe('mailpush answered 403: User not authorized to perform this action.')
    fake.receive(ada('1'))
    await one.push()
    await one.until(() => one.delivered.length === 1)
    expect(one.channel.health?.().state).toBe('down')
    await one.until(() => one.channel.health?.().state === 'ok', 1000)
    expect(asked('POST /watch')).toBe(1 + 5 + 1)
  })

  test('that never came about is tried again until it does', async () => {
    bench = await startBench()
    bench.fake.fail({ fault: 'status', status: 400 }, { times: 3, matches: ({ path }) => path.endsWith('/watch') })
    const one = bench.run()
    await one.until(() => one.channel.health?.().state === 'down')
    await one.until(() => one.channel.health?.().state === 'ok', 500)
    bench.fake.receive(ada('1'))
    await one.push()
    await one.until(() => one.delivered.length === 1)
  })
})

describe('a subscription the provider refuses', () => {
  const refused = (message: string) => ({ error: { code: 403, message, errors: [{ reason: 'forbidden' }] } })
  const refuse = (message: string, times: number) =>
    bench.fake.fail({ fault: 'status', status: 403, body: refused(message) }, { times, matches: ({ path }) => path.endsWith('/watch') })

  test('is told once for each reason, however often it is tried', async () => {
    bench = await startBench()
    for (const message of ['one', 'two', 'one', 'two']) refuse(message, 3)
    const one = bench.run()
    const told = () => one.host.logs.filter(({ message }) => /subscri/.test(message)).map(({ level, fields }) => [level, fields.error])
    await one.until(() => one.channel.health?.().state === 'ok', 1000)
    expect(bench.asked('POST /watch')).toBe(13)
    const warnings = ['one', 'two'].map((message) => ['warn', expect.objectContaining({ message: `mailpush answered 403: ${message}` })])
    expect(told()).toEqual([...warnings, ['info', undefined]])
    refuse('one', 2)
    await one.until(() => one.channel.health?.().state === 'down', 300_000)
    expect(told().slice(3)).toEqual(warnings.slice(0, 1))
  })

  test('keeps no mail from coming, from the first start on, and health says what is wrong', async () => {
    bench = await startBench()
    refuse('no', 10_000)
    bench.fake.receive(ada('from before'))
    const one = bench.run()
    await one.until(() => one.channel.health?.().state === 'down' && one.host.clock.sleeping > 0)
    bench.fake.receive(ada('1'))
    await one.until(() => one.delivered.length > 0, 10_000)
    expect(one.delivered.map(({ text }) => text)).toEqual(['Subject: 1\n\nhi'])
    expect(one.channel.health?.()).toMatchObject({ state: 'down', detail: 'mailpush answered 403: no' })
  })

  test('keeps no mailbox from being read whose cursor the provider no longer knows', async () => {
    const { one, fake } = await start()
    await one.stop()
    refuse('no', 10_000)
    fake.receive(ada('1'))
    fake.mailbox.forget()
    const two = bench.run()
    await two.until(() => two.delivered.length === 1)
    fake.receive(ada('2'))
    await two.until(() => two.delivered.length === 2, 10_000)
    expect(two.channel.health?.().detail).toBe('mailpush answered 403: no')
  })
})

describe('the access token', () => {
  test('that expires in the middle of a batch is renewed once, and nothing is lost or repeated', async () => {
    let expire = true
    const { one, fake, asked } = await start({
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
    expect(asked('POST /token')).toBe(1)
  })

  test('is renewed before it ends, and needs no configured one', async () => {
    const { one, asked } = await start({ config: { ...REFRESH, oauth_token: undefined } })
    expect(asked('POST /token')).toBe(1)
    for (let minutes = 0; minutes < 60; minutes += 5) {
      await one.host.advance(300_000)
      await one.until(() => one.host.clock.sleeping > 0)
    }
    expect(asked('POST /token')).toBe(2)
    expect(one.channel.health?.().state).toBe('ok')
  })

  test('that expired, with none to be had, is said, and the mail is brought once there is one', async () => {
    const { one, fake } = await start()
    fake.receive(ada('1'))
    fake.expireTokens()
    await one.push()
    await one.until(() => one.channel.health?.().state === 'down')
    expect(one.channel.health?.().detail).toBe('mailpush answered 401 (is oauth_token valid?)')
    await one.stop()
    const two = bench.run({ config: REFRESH })
    await two.until(() => two.delivered.length === 1)
  })

  test.each<[why: string, config: object, detail: RegExp]>([
    ['none is configured', { oauth_token: undefined }, /^mailpush has no access token/],
    [
      'the refresh token is no longer good',
      { ...REFRESH, oauth_token: undefined, refresh_token: 'other' },
      /invalid_grant: Token has been expired/,
    ],
    [
      'the token endpoint is no such thing',
      { ...REFRESH, oauth_token: undefined, token_url: 'http://127.0.0.1:1/' },
      /the token endpoint of mailpush/,
    ],
  ])('cannot be had where %s, and that is said', async (_, config, detail) => {
    bench = await startBench()
    const one = bench.run({ config })
    await one.until(() => one.channel.health?.().state === 'down')
    expect(one.channel.health?.().detail).toMatch(detail)
  })
})

describe('whatever goes wrong on the wire, every mail comes once it is over', () => {
  const rateLimited = { error: { code: 403, message: 'User-rate limit exceeded.', errors: [{ reason: 'userRateLimitExceeded' }] } }
  test.each<[what: string, fault: ProviderFault, times: number]>([
    ['429 with a wait', { fault: 'status', status: 429, headers: { 'retry-after': '7' } }, 1],
    ['429', { fault: 'status', status: 429 }, 3],
    ['a rate limit told as 403', { fault: 'status', status: 403, body: rateLimited }, 2],
    ['500', { fault: 'status', status: 500 }, 4],
    ['502', { fault: 'status', status: 502, body: '<html>' }, 3],
    ['503 with a wait', { fault: 'status', status: 503, headers: { 'retry-after': '2' } }, 2],
    ['another answer', { fault: 'status', status: 200, body: [] }, 2],
    ['an oversize answer', { fault: 'status', status: 200, body: `"${'x'.repeat(1_100_000)}"` }, 2],
    ['a redirect', { fault: 'status', status: 302, headers: { location: 'http://127.0.0.1:9/' } }, 2],
    ['garbage', { fault: 'garbage' }, 2],
    ['a truncated answer', { fault: 'cut' }, 2],
    ['a reset after the request', { fault: 'lost' }, 2],
    ['a reset before it', { fault: 'reset' }, 2],
    ['a slow body', { fault: 'slow', ms: 1 }, 3],
  ])('%s', async (_, fault, times) => {
    const { one, fake } = await start()
    for (const path of ['/history', '/messages/']) fake.fail(fault, { times, matches: (request) => request.path.includes(path) })
    for (const subject of ['1', '2', '3']) fake.receive(ada(subject))
    await one.push()
    await one.until(() => new Set(one.ids()).size === 3 && one.channel.health?.().state === 'ok', 1000)
  })

  test('a provider that asks for time gets it', async () => {
    const { one, fake, asked } = await start()
    fake.fail({ fault: 'status', status: 429, headers: { 'retry-after': '60' } }, { matches: ({ path }) => path.endsWith('/history') })
    fake.receive(ada('1'))
    await one.push()
    await one.until(() => one.channel.health?.().state === 'down')
    const before = asked('GET /history')
    await one.host.advance(59_000)
    await one.push()
    await one.host.advance(900)
    expect(asked('GET /history')).toBe(before)
    await one.host.advance(100)
    await one.until(() => one.delivered.length === 1)
  })

  test('a push ends a pause nobody asked for', async () => {
    const { one, fake, asked } = await start()
    const before = asked('GET /history')
    fake.fail({ fault: 'status', status: 500 }, { times: 9, matches: ({ path }) => path.endsWith('/history') })
    fake.receive(ada('1'))
    await one.push()
    await one.until(() => asked('GET /history') === before + 9 && one.host.clock.sleeping > 0, 5000)
    await one.host.advance(1000)
    await one.push()
    await one.until(() => one.delivered.length === 1)
  })

  test('pushes do not make a provider be asked more than once a second that fails', async () => {
    const { one, fake, asked } = await start()
    fake.fail({ fault: 'status', status: 500 }, { times: 1000, matches: ({ path }) => path.endsWith('/history') })
    const before = asked('GET /history')
    for (let count = 0; count < 100; count++) {
      await one.push()
      await one.until(() => one.host.clock.sleeping > 0)
      await one.host.advance(100)
    }
    expect(asked('GET /history') - before).toBeGreaterThan(5)
    expect(asked('GET /history') - before).toBeLessThan(14)
  })

  test('pauses grow, up to half a minute', async () => {
    const { one, fake, asked } = await start()
    fake.fail({ fault: 'status', status: 500 }, { times: 1000, matches: ({ path }) => path.endsWith('/history') })
    await one.push()
    await one.until(() => one.channel.health?.().state === 'down')
    await one.until(() => one.host.clock.monotonicMs() >= HOUR_MS, 5000)
    expect(asked('GET /history')).toBeGreaterThan(110)
    expect(asked('GET /history')).toBeLessThan(260)
  })
})

test.each<[where: string, path: string]>([
  ['its first request', '/profile'],
  ['a listing', '/history'],
  ['the subscription', '/watch'],
])('listen ends soon after its abort, in the middle of %s', async (_, path) => {
  bench = await startBench()
  bench.fake.fail({ fault: 'hang' }, { matches: (request) => request.path.endsWith(path) })
  const one = bench.run()
  await one.until(() => bench.fake.requests.some((request) => request.path.endsWith(path)))
  expect(await within(1000, one.stop())).toBe('ended')
})

test('listen ends soon after its abort while a token is waited for, or a pause', async () => {
  bench = await startBench()
  bench.fake.fail({ fault: 'hang' }, { matches: ({ path }) => path === '/token' })
  const one = bench.run({ config: { ...REFRESH, oauth_token: undefined } })
  await one.until(() => bench.asked('POST /token') === 1)
  expect(await within(1000, one.stop())).toBe('ended')
  const two = bench.run({ config: { oauth_token: undefined } })
  await two.until(() => two.channel.health?.().state === 'down')
  expect(await within(1000, two.stop())).toBe('ended')
})

test('a push that could not be kept before the mailbox has a cursor is refused, so that the provider sends it again', async () => {
  bench = await startBench()
  const { channel, host } = bench.channel()
  host.keyValue.set = async () => {
    throw new AppError('unavailable', 'the disk is full')
  }
  const push = { headers: {}, url: new URL('http://localhost/'), body: new TextEncoder().encode(bench.fake.push()), receivedAtMs: 0 }
  await expect(channel.webhook?.parse(push)).rejects.toMatchObject({ code: 'unavailable' })
})
