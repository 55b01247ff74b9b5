import type { Role, SopDispatch, SopEvent, Sops, Standing } from '@sluice/sdk'
import { AppError } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { type TestGatewayOptions, type TestRequest, testGateways } from '../testing.ts'

const gateway = testGateways()

/** An engine with triggers on these paths, each with its result. */
function engine(paths: Readonly<Record<string, readonly SopDispatch[]>>, role: Standing = 'operator') {
  const fired: { event: SopEvent; also: Parameters<Sops['fire']>[1] }[] = []
  const sops: Partial<Sops> = {
    matches: (source, topic) => source === 'webhook' && topic in paths,
    loaded: async () => {},
    webhooks: () => [{ secrets: [], headers: [], role }],
    async fire(event, also) {
      fired.push({ event, also })
      return paths[event.topic] ?? []
    },
  }
  return { sops, fired }
}

const STARTED: SopDispatch = { sop: 'deploy', status: 'started', runId: 'run-1' }
const WAITING: SopDispatch = { sop: 'build', status: 'waiting', runId: 'run-2', reason: 'too many runs' }
const SKIPPED: SopDispatch = { sop: 'alert', status: 'skipped', reason: 'cooling down for another 3 s' }

async function paired(options: TestGatewayOptions, role: Role = 'operator') {
  const made = gateway(options)
  const { token, device } = await made.pair('test', null, role)
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const post = (path: string, body: string, more: Record<string, string> = {}, init: TestRequest = {}) =>
    made.request(path, { method: 'POST', headers: { ...headers, ...more }, body, ...init })
  return { ...made, device, post }
}

describe('a trigger that names /webhook', () => {
  test('starts each procedure once in place of a turn', async () => {
    const { sops, fired } = engine({ '/webhook': [STARTED, WAITING, SKIPPED] })
    const { post, turns, device, clock } = await paired({ sops })
    const body = '{"message":"ship it","ref":"main"}'
    const response = await post('/webhook', body)
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({
      status: 'accepted',
      source: 'webhook',
      path: '/webhook',
      results: [
        { sop: 'deploy', status: 'started', run_id: 'run-1' },
        { sop: 'build', status: 'waiting', run_id: 'run-2', reason: 'too many runs' },
        { sop: 'alert', status: 'skipped', reason: 'cooling down for another 3 s' },
      ],
    })
    expect(turns).toEqual([])
    const event = {
      source: 'webhook',
      topic: '/webhook',
      payload: body,
      atMs: clock.nowMs(),
      by: `device:${device}`,
      standing: 'operator',
      starter: `device:${device}`,
    }
    expect(fired).toEqual([{ event, also: { repeats: true } }])
  })

  test('says how the caller stands, so that the message of a client is for the agent', async () => {
    const { sops, fired } = engine({ '/webhook': [] })
    const { post, turns } = await paired({ sops }, 'client')
    expect((await post('/webhook', '{"message":"ship it"}')).status).toBe(200)
    expect(fired).toMatchObject([{ event: { standing: 'client' } }])
    expect(turns).toHaveLength(1)
  })

  test('leaves the message to the agent if its conditions do not hold', async () => {
    const { post, turns } = await paired({ sops: engine({ '/webhook': [] }).sops })
    expect(await (await post('/webhook', '{"message":"hello"}')).json()).toMatchObject({ response: 're: hello' })
    expect(turns).toHaveLength(1)
  })

  test('passes the idempotency key to the commit that starts the runs', async () => {
    const { sops, fired } = engine({ '/webhook': [STARTED] })
    const { post, device } = await paired({ sops })
    await post('/webhook', '{"message":"x"}', { 'x-idempotency-key': 'k' })
    expect(fired[0]?.also).toEqual({ repeats: true, idempotency: { scope: `${device} /webhook`, key: 'k' } })
    expect(await (await post('/webhook', '{"message":"x"}', { 'x-idempotency-key': 'k' })).json()).toMatchObject({ status: 'duplicate' })
    expect(fired).toHaveLength(1)
  })

  test('releases the key if the runs cannot be stored', async () => {
    const { sops } = engine({ '/webhook': [STARTED] })
    let fails = true
    const { post } = await paired({
      sops: {
        ...sops,
        fire: (...args) => (fails ? Promise.reject(new AppError('unavailable', 'full')) : (sops.fire?.(...args) ?? expect.fail())),
      },
    })
    expect((await post('/webhook', '{"message":"x"}', { 'x-idempotency-key': 'k' })).status).toBe(503)
    fails = false
    expect(await (await post('/webhook', '{"message":"x"}', { 'x-idempotency-key': 'k' })).json()).toMatchObject({ status: 'accepted' })
  })

  test('sees only bodies that are a message', async () => {
    const { sops, fired } = engine({ '/webhook': [STARTED] })
    const { post } = await paired({ sops })
    expect((await post('/webhook', '{"no":"message"}')).status).toBe(400)
    expect(fired).toEqual([])
  })
})

describe('a path that only a trigger names', () => {
  test('accepts any JSON, or nothing, as its payload', async () => {
    const { sops, fired } = engine({ '/deploy/web': [STARTED] })
    const { post } = await paired({ sops })
    for (const body of ['{"ref":"main"}', '[1]', '"x"', '7', ''])
      expect(await (await post('/deploy/web', body)).json()).toMatchObject({ status: 'accepted', path: '/deploy/web' })
    expect(fired.map(({ event }) => event.payload)).toEqual(['{"ref":"main"}', '[1]', '"x"', '7', null])
  })

  test('is matched exactly, except for the query', async () => {
    const { sops } = engine({ '/deploy': [STARTED] })
    const { post } = await paired({ sops })
    expect((await post('/Deploy', '{}')).status).toBe(404)
    expect((await post('/deploy/', '{}')).status).toBe(404)
    expect((await post('/deploy?x=1', '{}')).status).toBe(200)
  })

  test('needs the credentials of /webhook', async () => {
    const { sops, fired } = engine({ '/deploy': [STARTED] })
    const { post } = await paired({ sops, config: { webhook_secret: 'shared' } })
    expect((await post('/deploy', '{}', { authorization: 'Bearer wrong', 'x-webhook-secret': 'shared' })).status).toBe(401)
    expect((await post('/deploy', '{}')).status).toBe(401)
    expect((await post('/deploy', '{}', { 'x-webhook-secret': 'shared' })).status).toBe(200)
    expect(fired).toHaveLength(1)
  })

  test('needs an operator unless a trigger is open to clients', async () => {
    const closed = engine({ '/deploy': [STARTED] })
    const refused = await (await paired({ sops: closed.sops }, 'client')).post('/deploy', '{}')
    expect([refused.status, await refused.json()]).toEqual([
      403,
      expect.objectContaining({ error: expect.stringContaining('role = "client"') }),
    ])
    expect(closed.fired).toEqual([])
    const open = engine({ '/deploy': [STARTED] }, 'client')
    const { post, device } = await paired({ sops: open.sops }, 'client')
    expect((await post('/deploy', '{}')).status).toBe(200)
    expect(open.fired).toMatchObject([{ event: { standing: 'client', starter: `device:${device}` } }])
  })

  test('counts for the rate limit of /webhook', async () => {
    const { sops } = engine({ '/deploy': [STARTED] })
    const { post } = await paired({ sops, config: { webhook_rate_limit_per_minute: 2 } })
    expect((await post('/deploy', '{}')).status).toBe(200)
    expect((await post('/webhook', '{"message":"x"}')).status).toBe(200)
    expect((await post('/deploy', '{}')).status).toBe(429)
  })

  test('refuses a body that is not JSON or too large', async () => {
    const { sops, fired } = engine({ '/deploy': [STARTED] })
    const { post } = await paired({ sops })
    expect((await post('/deploy', '{"a":')).status).toBe(400)
    expect((await post('/deploy', `"${'x'.repeat(70_000)}"`)).status).toBe(413)
    expect(fired).toEqual([])
  })

  test('has idempotency keys of its own', async () => {
    const { sops, fired } = engine({ '/deploy': [STARTED], '/other': [STARTED] })
    const { post } = await paired({ sops })
    for (const path of ['/deploy', '/other', '/deploy']) await post(path, '{}', { 'x-idempotency-key': 'k' })
    expect(fired.map(({ event }) => event.topic)).toEqual(['/deploy', '/other'])
  })

  test('answers without results if no condition holds', async () => {
    const { post } = await paired({ sops: engine({ '/deploy': [] }).sops })
    expect(await (await post('/deploy', '{}')).json()).toEqual({ status: 'accepted', source: 'webhook', path: '/deploy', results: [] })
  })

  test('is 404 while no engine runs, and 405 with every other method', async () => {
    const { post } = await paired({})
    expect((await post('/deploy', '{}')).status).toBe(404)
    const second = await paired({ sops: engine({ '/deploy': [STARTED] }).sops })
    const other = await second.request('/deploy')
    expect([other.status, other.headers.get('allow')]).toEqual([405, 'POST'])
  })
})
