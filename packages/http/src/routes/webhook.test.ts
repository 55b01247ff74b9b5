import { Readable } from 'node:stream'
import { AppError, sha256Hex } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { type TestGatewayOptions, type TestRequest, testGateways } from '../testing.ts'

const gateway = testGateways()

/** A gateway with a paired device, and `post` to send `POST /webhook` as that device. */
async function paired(options: TestGatewayOptions = {}) {
  const made = gateway(options)
  const { token, device } = await made.pair()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const post = (message: unknown, more: Record<string, string> = {}, init: TestRequest = {}) =>
    made.request('/webhook', { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify({ message }), ...init })
  return { ...made, token, device, headers, post }
}

const DUPLICATE = { status: 'duplicate', idempotent: true, message: expect.any(String) }

describe('an accepted message', () => {
  test('is answered with the reply, the model, the session and the turn', async () => {
    const { post, turns, device } = await paired()
    const response = await post('hello', { 'x-session-id': 'kitchen' })
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ response: 're: hello', model: 'echo', session_id: 'kitchen', turn_id: 'turn-1' })
    expect(turns).toMatchObject([
      { source: 'webhook', session: `${device}/kitchen`, text: 'hello', owner: device, caller: `device:${device}` },
    ])
  })

  test('belongs to no session without X-Session-Id', async () => {
    const { post, turns } = await paired()
    expect(await (await post('hello')).json()).toMatchObject({ session_id: null })
    expect(turns).toMatchObject([{ session: null }])
  })

  test('with Prefer: respond-async is stored and answered with its status URL', async () => {
    const { post, request, headers } = await paired()
    const response = await post('later', { prefer: 'wait=5, Respond-Async', 'x-idempotency-key': 'k' })
    expect(response.status).toBe(202)
    const accepted = (await response.json()) as { turn_id: string; status_url: string }
    expect(accepted).toEqual({ turn_id: 'turn-1', status_url: '/api/turns/turn-1' })
    expect(await (await request(accepted.status_url, { headers })).json()).toMatchObject({ turn_id: 'turn-1', status: 'queued' })
    expect(await (await post('later', { 'x-idempotency-key': 'k' })).json()).toEqual({ ...DUPLICATE, state: 'in_flight' })
  })

  test('continues the trace that its traceparent names', async () => {
    const { post, turns, observations } = await paired()
    await post('hello', { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' })
    expect(turns).toMatchObject([{ trace: { traceId: '0af7651916cd43dd8448eb211c80319c', parentId: 'b7ad6b7169203331' } }])
    expect(observations).toMatchObject([{ kind: 'request', route: '/webhook', status: 200, span: { trace: turns[0]?.trace } }])
  })

  test('may have extra members, duplicate members and __proto__', async () => {
    const { post, turns } = await paired()
    const body = '{"message":"first","other":[1],"__proto__":{"message":"evil"},"constructor":1,"message":"last","n":1e999}'
    expect(await (await post('', {}, { body })).json()).toMatchObject({ response: 're: last' })
    expect(turns).toHaveLength(1)
  })
})

describe('credentials', () => {
  test('a missing or wrong webhook secret is 401', async () => {
    const { post } = await paired({ config: { webhook_secret: 'a webhook secret' } })
    expect((await post('hello')).status).toBe(401)
    expect((await post('hello', { 'x-webhook-secret': 'wrong' })).status).toBe(401)
    expect((await post('hello', { 'x-webhook-secret': ' a webhook secret ' })).status).toBe(200)
  })

  test('the secret does not replace the token', async () => {
    const { post } = await paired({ config: { webhook_secret: 'a webhook secret' } })
    const response = await post('hello', { 'x-webhook-secret': 'a webhook secret', authorization: 'Bearer wrong' })
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe('Bearer')
  })

  test('wrong secrets count for the lockout; right credentials pass it', async () => {
    const { post, headers, request } = await paired({ config: { webhook_secret: 'right', webhook_rate_limit_per_minute: 0 } })
    const peer = '203.0.113.9'
    for (let tries = 0; tries < 5; tries++) {
      expect((await post('x', { 'x-webhook-secret': 'wrong' }, { peer })).status).toBe(401)
      expect((await post('x', { authorization: 'Bearer wrong' }, { peer })).status).toBe(401)
    }
    const locked: [string, Record<string, string>][] = [
      ['a wrong secret', { 'x-webhook-secret': 'wrong' }],
      ['no secret', {}],
      ['a wrong token', { 'x-webhook-secret': 'right', authorization: 'Bearer wrong' }],
    ]
    for (const [what, wrong] of locked) {
      const response = await post('x', wrong, { peer })
      expect(response.status, what).toBe(429)
      expect(await response.json(), what).toMatchObject({ error: 'Too Many Requests', retry_after: 300 })
    }
    const status = async (authorization: string, from: object = { peer }) =>
      (await request('/api/status', { headers: { ...headers, authorization }, ...from })).status
    expect(await status('Bearer wrong'), 'everywhere else too').toBe(429)
    expect(await status('Bearer wrong', {}), 'other addresses are not locked out').toBe(401)
    expect((await post('x', { 'x-webhook-secret': 'right' }, { peer })).status).toBe(200)
    expect(await status(headers.authorization)).toBe(200)
  })

  test('a device that is revoked while its body is read starts no turn', async () => {
    const made = await paired()
    const { device, token } = await made.pair('slow')
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
    const body = new Readable({ read: () => undefined })
    const response = made.fetch(new Request('http://127.0.0.1:42617/webhook', { method: 'POST', headers }), {
      incoming: Object.assign(body, { socket: { remoteAddress: '127.0.0.1' }, headers }) as never,
    })
    body.push('{"message":')
    await made.store.devices.revoke(device)
    body.push('"hello"}')
    body.push(null)
    expect([(await response).status, made.turns.length]).toEqual([401, 0])
  })

  test('without pairing, a foreign Host or Origin is refused', async () => {
    const { post } = await paired({ config: { require_pairing: false } })
    expect((await post('x', { authorization: '' })).status).toBe(200)
    expect((await post('x', { host: 'rebound.example' })).status).toBe(403)
    expect((await post('x', { origin: 'https://evil.example' })).status).toBe(403)
  })

  test('with pairing, only a foreign Origin is refused', async () => {
    const { post } = await paired()
    expect((await post('x', { host: 'public.example' })).status).toBe(200)
    expect((await post('x', { host: 'public.example', origin: 'https://public.example' })).status).toBe(200)
    expect((await post('x', { host: 'public.example', origin: 'https://evil.example' })).status).toBe(403)
  })
})

describe('the rate limit', () => {
  test('answers 429 with the seconds until the next call, in body and header', async () => {
    const { post, clock, observations } = await paired({ config: { webhook_rate_limit_per_minute: 2 } })
    await post('1')
    await clock.advance(10_500)
    await post('2')
    const response = await post('3')
    expect(response.status).toBe(429)
    expect(response.headers.get('retry-after')).toBe('50')
    expect(await response.json()).toEqual({ error: 'Too Many Requests', code: 'rate_limited', retry_after: 50 })
    expect(observations).toContainEqual({ kind: 'rate_limited', route: '/webhook' })
    await clock.advance(50_000)
    expect((await post('4')).status).toBe(200)
  })

  test('counts refused requests too, per address', async () => {
    const { post } = await paired({ config: { webhook_rate_limit_per_minute: 2 } })
    const peer = '203.0.113.9'
    await post('x', { authorization: 'Bearer wrong' }, { peer })
    await post('', {}, { peer, body: 'not json' })
    expect((await post('x', {}, { peer })).status).toBe(429)
    expect((await post('x', {}, { peer: '203.0.113.10' })).status).toBe(200)
  })

  test('leaves the idempotency key of a refused request unused', async () => {
    const { post, turns, clock } = await paired({ config: { webhook_rate_limit_per_minute: 1 } })
    await post('1')
    expect((await post('2', { 'x-idempotency-key': 'k' })).status).toBe(429)
    await clock.advance(60_000)
    expect(await (await post('2', { 'x-idempotency-key': 'k' })).json()).toMatchObject({ response: 're: 2' })
    expect(turns).toHaveLength(2)
  })

  test('keeps its counts over a reload that does not change it', async () => {
    const made = await paired({ config: { webhook_rate_limit_per_minute: 1 } })
    await made.post('1')
    made.reload({ webhook_rate_limit_per_minute: 1, pairing_code_ttl_secs: 60 })
    expect((await made.post('2')).status).toBe(429)
    made.reload({ webhook_rate_limit_per_minute: 2 })
    expect((await made.post('3')).status).toBe(200)
  })
})

describe('an idempotency key', () => {
  test('that is repeated runs nothing, whatever the message is', async () => {
    const { post, turns } = await paired()
    await post('once', { 'x-idempotency-key': 'k' })
    const repeat = await post('something else', { 'x-idempotency-key': ' k ' })
    expect(repeat.status).toBe(200)
    expect(await repeat.json()).toEqual({
      status: 'duplicate',
      idempotent: true,
      message: 'Request already processed for this idempotency key',
    })
    expect(turns).toHaveLength(1)
  })

  test('that is repeated is answered with the id of its turn', async () => {
    const running = Promise.withResolvers<string>()
    const { post, request, headers, resumed } = await paired({ reply: () => running.promise })
    await post('later', { prefer: 'respond-async', 'x-idempotency-key': 'k' })
    const inFlight = await post('later', { 'x-idempotency-key': 'k' })
    expect(inFlight.headers.get('x-turn-id')).toBe('turn-1')
    expect(await (await request('/api/turns/turn-1', { headers })).json()).toMatchObject({ status: 'queued' })
    expect(resumed, 'a turn that was lost is resumed by the repeat').toEqual(['turn-1'])

    running.resolve('done')
    const first = await post('now', { 'x-idempotency-key': 'other' })
    const repeat = await post('now', { 'x-idempotency-key': 'other' })
    expect(repeat.headers.get('x-turn-id')).toBe(((await first.json()) as { turn_id: string }).turn_id)
    expect(resumed).toEqual(['turn-1'])
  })

  test('of a running request is answered as in flight', async () => {
    const running = Promise.withResolvers<string>()
    const { post } = await paired({ reply: () => running.promise })
    const first = post('slow', { 'x-idempotency-key': 'k' })
    await expect.poll(async () => (await post('slow', { 'x-idempotency-key': 'k' })).json()).toEqual({ ...DUPLICATE, state: 'in_flight' })
    running.resolve('done')
    expect(await (await first).json()).toMatchObject({ response: 'done' })
    expect(await (await post('slow', { 'x-idempotency-key': 'k' })).json()).toEqual(DUPLICATE)
  })

  test('is released by a failed turn, which answers 502', async () => {
    let fails = true
    const reply = () => {
      if (fails) throw new AppError('upstream', 'The model did not answer')
      return 'recovered'
    }
    const { post } = await paired({ reply })
    const failed = await post('x', { 'x-idempotency-key': 'k' })
    expect(failed.status).toBe(502)
    expect(await failed.json()).toEqual({ error: 'The model did not answer', code: 'upstream' })
    fails = false
    expect(await (await post('x', { 'x-idempotency-key': 'k' })).json()).toMatchObject({ response: 'recovered' })
  })

  test('can be used again after its time to live', async () => {
    const { post, clock, turns } = await paired({ config: { idempotency_ttl_secs: 300 } })
    await post('x', { 'x-idempotency-key': 'k' })
    await clock.advance(299_999)
    expect(await (await post('x', { 'x-idempotency-key': 'k' })).json()).toMatchObject({ status: 'duplicate' })
    await clock.advance(1)
    await post('x', { 'x-idempotency-key': 'k' })
    expect(turns).toHaveLength(2)
  })

  test('is forgotten when idempotency_max_keys newer ones are known', async () => {
    const { post } = await paired({ config: { idempotency_max_keys: 2 } })
    for (const key of ['a', 'b', 'c']) await post('x', { 'x-idempotency-key': key })
    expect(await (await post('x', { 'x-idempotency-key': 'c' })).json()).toMatchObject({ status: 'duplicate' })
    expect(await (await post('x', { 'x-idempotency-key': 'a' })).json()).toMatchObject({ response: 're: x' })
  })

  test('belongs to one device', async () => {
    const made = await paired()
    const other = await made.pair('other')
    await made.post('x', { 'x-idempotency-key': 'k' })
    expect(await (await made.post('x', { 'x-idempotency-key': 'k', authorization: `Bearer ${other.token}` })).json()).toMatchObject({
      response: 're: x',
    })
  })

  test('is not used up by a request with an invalid body', async () => {
    const { post } = await paired()
    expect((await post('', { 'x-idempotency-key': 'k' })).status).toBe(400)
    expect(await (await post('x', { 'x-idempotency-key': 'k' })).json()).toMatchObject({ response: 're: x' })
  })

  test.each([
    ['empty', ' '],
    ['longer than 255', 'k'.repeat(256)],
    ['with a space inside', 'a b'],
    ['not ASCII', 'k\u00e9'],
  ])('that is %s is 400', async (_what, key) => {
    const { post, turns } = await paired()
    const response = await post('x', { 'x-idempotency-key': key })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_request', error: expect.stringContaining('X-Idempotency-Key') })
    expect(turns).toHaveLength(0)
  })
})

test.each([
  ['empty', ''],
  ['129 long', 's'.repeat(129)],
  ['a path', '../etc'],
  ['spaced', 'a b'],
  ['not ASCII', '\u00e9'],
])('a session id that is %s is 400', async (_what, session) => {
  const { post, turns } = await paired()
  const response = await post('x', { 'x-session-id': session })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: expect.stringContaining('X-Session-Id') })
  expect(turns).toHaveLength(0)
})

describe('the order of checks', () => {
  /** Starts with a request in which everything is wrong; each step corrects the first fault. */
  test('is size, rate limit, lockout, bearer, secret, body, idempotency, turn', async () => {
    const made = gateway({ config: { webhook_rate_limit_per_minute: 11, webhook_secret: 'right' } })
    const { token } = await made.pair()
    const peer = '203.0.113.9'
    const send = (init: { headers?: Record<string, string>; body?: string } = {}) =>
      made.request('/webhook', { method: 'POST', body: 'not json', peer, ...init })
    const status = async (init?: Parameters<typeof send>[0]) => (await send(init)).status

    const large = { body: 'x'.repeat(65_537) }
    for (let tries = 0; tries < 10; tries++) expect(await status({ headers: { authorization: 'Bearer wrong' } })).toBe(401)
    const locked = await send({ headers: { authorization: 'Bearer wrong' } })
    expect([locked.status, locked.headers.get('retry-after')], 'lockout before bearer').toEqual([429, '300'])
    const limited = await send()
    expect([limited.status, limited.headers.get('retry-after')], 'rate limit before lockout').toEqual([429, '60'])
    expect(await status(large), 'size before rate limit').toBe(413)

    await made.clock.advance(300_000)
    const bearer = { authorization: `Bearer ${token}` }
    const secret = { 'x-webhook-secret': 'right' }
    const json = { 'content-type': 'application/json' }
    expect(await (await send()).json(), 'bearer before secret').toMatchObject({ error: expect.stringContaining('pair') })
    expect(await (await send({ headers: bearer })).json(), 'secret before body').toMatchObject({
      error: expect.stringContaining('X-Webhook-Secret'),
    })
    const wrongKey = { ...bearer, ...secret, ...json, 'x-idempotency-key': '' }
    expect(await (await send({ headers: wrongKey })).json(), 'body before idempotency').toMatchObject({
      error: expect.stringContaining('JSON'),
    })
    const body = '{"message":"x"}'
    expect(await (await send({ headers: wrongKey, body })).json()).toMatchObject({ error: expect.stringContaining('X-Idempotency-Key') })
    expect(await status({ headers: { ...bearer, ...secret, ...json }, body })).toBe(200)
  })
})

test('a client that goes away does not end its turn', async () => {
  const running = Promise.withResolvers<string>()
  const { post } = await paired({ reply: () => running.promise })
  const gone = new AbortController()
  const first = post('x', { 'x-idempotency-key': 'k' }, { signal: gone.signal })
  await expect.poll(async () => (await post('x', { 'x-idempotency-key': 'k' })).json()).toMatchObject({ state: 'in_flight' })
  gone.abort()
  running.resolve('done')
  await first
  expect(await (await post('x', { 'x-idempotency-key': 'k' })).json()).toEqual(DUPLICATE)
})

test('a bug is 500 with a fixed text, and its cause is only in the log', async () => {
  const { post, logs } = await paired({
    reply: () => {
      throw new Error('the secret is hunter2')
    },
  })
  const response = await post('x')
  expect(response.status).toBe(500)
  expect(await response.json()).toEqual({ error: 'Internal error', code: 'internal' })
  expect(logs).toMatchObject([
    { level: 'error', fields: { route: '/webhook', error: expect.objectContaining({ message: 'the secret is hunter2' }) } },
  ])
})

test('the secret may be configured as its hash', async () => {
  const { post } = await paired({ config: { webhook_secret_sha256: sha256Hex('right').toUpperCase() } })
  expect((await post('{"message":"hi"}', { 'x-webhook-secret': 'right' })).status).toBe(200)
  expect((await post('{"message":"hi"}', { 'x-webhook-secret': sha256Hex('right') })).status).toBe(401)
  expect((await post('{"message":"hi"}')).status).toBe(401)
})

test('no answer and no log line shows the configured secret', async () => {
  const { post, logs } = await paired({ config: { webhook_secret: 'plain webhook secret' } })
  const answers = [
    await post('x'),
    await post('x', { 'x-webhook-secret': 'wrong' }),
    await post('x', { 'x-webhook-secret': 'plain webhook secret' }),
  ]
  const texts = await Promise.all(answers.map((answer) => answer.text()))
  expect(JSON.stringify([texts, logs])).not.toContain('plain webhook secret')
})
