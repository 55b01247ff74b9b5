import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { testSnapshot } from '@sluice/runtime/testing/test-snapshot'
import { AppError, type Channel, defineFeature, secretText } from '@sluice/sdk'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { type TestGatewayOptions, testGateways } from '../testing.ts'

/** The members of answers that the tests read. */
interface Answer {
  readonly [member: string]: unknown
  readonly version: string
}

const gateways = testGateways()
const HOUR_MS = 3_600_000

const probe = defineFeature({
  id: 'x-probe',
  section: { path: 'x_probe', schema: v.object({ token: v.optional(secretText()), size: v.optional(v.number(), 3) }) },
  row: { kind: 'tool', summary: 'A probe', section: 'x_probe' },
  build: () => ({}),
})

async function arrange(options: TestGatewayOptions = {}) {
  const made = gateways({ features: [probe], ...options })
  const operator = await made.pair('o')
  const client = await made.pair('c', null, 'client')
  const call = async (method: string, path: string, body?: unknown, token = operator.token) => {
    const response = await made.request(path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Answer }
  }
  const file = async () => String((await call('GET', '/api/config')).body.file)
  const audited = async () => (await made.store.sops.audit({ limit: 100 })).map(({ kind, by, detail }) => ({ kind, by, detail }))
  return { ...made, operator, client, call, file, audited }
}

describe('the configuration', () => {
  test('is shown with the source of each value and without secrets', async () => {
    const { call, file } = await arrange()
    writeFileSync(await file(), '[gateway]\nport = 1234\n[x_probe]\ntoken = "hunter2"\n')
    const { body } = await call('GET', '/api/config')
    expect(JSON.stringify(body)).not.toContain('hunter2')
    expect(body).toMatchObject({ editable: true, shared: false, own: [], version: expect.stringMatching(/^[0-9a-f]{64}$/), left_out: [] })
    expect(body.keys).toEqual(
      expect.arrayContaining([
        { key: 'gateway.port', value: 1234, source: 'file', variable: null },
        { key: 'gateway.host', value: '127.0.0.1', source: 'default', variable: null },
        { key: 'x_probe.token', value: '[secret]', source: 'file', variable: null },
      ]),
    )
    const schema = (await call('GET', '/api/config/schema')).body
    expect(schema).toMatchObject({ properties: { x_probe: { properties: { token: { writeOnly: true } } } } })
  })

  test('shows what a change would do, and saves nothing', async () => {
    const { call, file } = await arrange()
    const path = await file()
    const changes = [
      { key: 'gateway.port', value: 4321 },
      { key: 'x_probe.token', value: 'hunter2' },
    ]
    const { status, body } = await call('POST', '/api/config/preview', { changes })
    expect(status).toBe(200)
    expect(body.changes).toEqual([
      { key: 'gateway.port', before: 42617, after: 4321, secret: false },
      { key: 'x_probe.token', before: null, after: '[secret]', secret: true },
    ])
    expect(existsSync(path)).toBe(false)
  })

  test('is saved with comments, encrypted secrets and a record of who did it', async () => {
    const { call, file, audited, operator } = await arrange()
    const path = await file()
    writeFileSync(path, '# mine\n[gateway] # here\nport = 1234\n')
    const { version } = (await call('GET', '/api/config')).body
    const changes = [
      { key: 'gateway.port', value: null },
      { key: 'x_probe.token', value: 'hunter2' },
      { key: 'gateway.allowed_hosts', value: ['a.example'] },
    ]
    const saved = await call('PUT', '/api/config', { changes, version })
    expect(saved.status).toBe(200)
    const text = readFileSync(path, 'utf8')
    expect(text).toMatch(/^# mine\n\[gateway\] # here\n/)
    expect(text).not.toMatch(/hunter2|1234/)
    expect(saved.body.version).toBe((await call('GET', '/api/config')).body.version)
    const keys = ['gateway.port', 'x_probe.token', 'gateway.allowed_hosts']
    expect(await audited()).toEqual([{ kind: 'config_changed', by: `device:${operator.device}`, detail: { keys } }])
    const again = await call('PUT', '/api/config', { changes, version })
    expect([again.status, again.body.code]).toEqual([409, 'conflict'])
  })

  test.each([
    ['an unknown key', { key: 'gateway.prot', value: 1 }, 400, 'invalid_request'],
    ['a value of another type', { key: 'gateway.port', value: 'many' }, 400, 'invalid_request'],
    ['a value out of range', { key: 'gateway.port', value: 70_000 }, 400, 'invalid_request'],
    ['the mask of a secret', { key: 'x_probe.token', value: '[secret]' }, 400, 'invalid_request'],
    ['a key of a feature that is left out', { key: 'channels_config.slack.bot_token', value: 'x' }, 404, 'not_compiled'],
    ['the name of a prototype', { key: '__proto__.x', value: 1 }, 400, 'invalid_request'],
  ])('refuses %s and changes nothing', async (_, change, status, code) => {
    const { call, file } = await arrange()
    const path = await file()
    const { version } = (await call('GET', '/api/config')).body
    const refused = await call('PUT', '/api/config', { changes: [{ key: 'gateway.host', value: '127.0.0.2' }, change], version })
    expect([refused.status, refused.body.code]).toEqual([status, code])
    expect(existsSync(path)).toBe(false)
  })

  test('is not changed by a caller without a credential', async () => {
    const { call, file } = await arrange({ config: { require_pairing: false } })
    const path = await file()
    const { version } = (await call('GET', '/api/config')).body
    const refused = await call('PUT', '/api/config', { changes: [{ key: 'gateway.port', value: 1 }], version })
    expect([refused.status, existsSync(path)]).toEqual([403, false])
  })

  test('can be repaired when the file is not valid', async () => {
    const { call, file } = await arrange()
    const path = await file()
    writeFileSync(path, '[gateway]\nport = 99999\n')
    expect((await call('GET', '/api/config')).body.code).toBe('config_invalid')
    const { body } = await call('POST', '/api/config/preview', { changes: [{ key: 'gateway.port', value: 1234 }] })
    expect(body.changes).toEqual([{ key: 'gateway.port', before: null, after: 1234, secret: false }])
    const saved = await call('PUT', '/api/config', { changes: [{ key: 'gateway.port', value: 1234 }], version: body.version })
    expect(saved.status).toBe(200)
  })
})

describe('costs', () => {
  test('are listed by hour and day, agent and model', async () => {
    const { call, store, clock } = await arrange()
    const turn = (id: string, agoMs: number, costUsd: number) =>
      store.turns.finish({
        id,
        agent: 'main',
        sessionId: null,
        source: 'webhook',
        status: 'done',
        input: '',
        response: 'x',
        model: 'm',
        error: null,
        inputTokens: 2,
        outputTokens: 1,
        costUsd,
        attempts: 1,
        createdAtMs: clock.nowMs() - agoMs,
        endedAtMs: clock.nowMs() - agoMs,
        messages: [],
      })
    await turn('a', 0, 1)
    await turn('b', 2 * HOUR_MS, 2)
    await turn('c', 40 * HOUR_MS, 4)
    const usd = async (query: string) => {
      const { body } = await call('GET', `/api/costs${query}`)
      return (body.costs as { cost_usd: number }[]).map(({ cost_usd }) => cost_usd)
    }
    expect(await usd('?by=hour')).toEqual([2, 1])
    expect((await usd('')).reduce((sum, each) => sum + each, 0)).toBe(7)
    expect((await call('GET', '/api/costs?by=hour&since=2020-01-01T00:00:00Z')).status).toBe(400)
    expect((await call('GET', '/api/costs?offset_minutes=7')).status).toBe(400)
    expect((await call('GET', '/api/costs')).body.costs).toEqual(
      expect.arrayContaining([expect.objectContaining({ agent: 'main', model: 'm', at: expect.stringMatching(/T00:00:00.000Z$/) })]),
    )
  })
})

describe('the log', () => {
  test('shows its last lines from a level on', async () => {
    const { call, runtime } = await arrange()
    for (const [level, message] of [
      ['info', 'one'],
      ['warn', 'two'],
      ['error', 'three'],
    ] as const)
      runtime.recentLog.add(JSON.stringify({ time: 't', level, message }), level)
    const messages = async (query: string) =>
      ((await call('GET', `/api/logs${query}`)).body.lines as { message: string }[]).map(({ message }) => message)
    expect(await messages('')).toEqual(['one', 'two', 'three'])
    expect(await messages('?level=warn')).toEqual(['two', 'three'])
    expect(await messages('?after=2')).toEqual(['three'])
    expect(await messages('?limit=1')).toEqual(['three'])
  })

  test('keeps a bounded number of lines', async () => {
    const { runtime } = await arrange()
    for (let line = 0; line < 3000; line++) runtime.recentLog.add('{"message":"x"}', 'info')
    expect(runtime.recentLog.after(0)).toHaveLength(1000)
    for (let line = 0; line < 20; line++) runtime.recentLog.add(JSON.stringify({ message: 'y'.repeat(60_000) }), 'info')
    const kept = runtime.recentLog.after(0)
    expect(kept.reduce((sum, { json }) => sum + json.length, 0)).toBeLessThanOrEqual(262_144)
    expect(kept.at(-1)?.number).toBe(3020)
  })

  test('is followed until the caller goes away', async () => {
    const { request, operator, runtime } = await arrange()
    runtime.recentLog.add('{"message":"before"}', 'info')
    const response = await request('/api/logs/follow?after=0&level=info', { headers: { authorization: `Bearer ${operator.token}` } })
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    expect(JSON.parse((await reader?.read())?.value ?? '')).toEqual({ number: 1, message: 'before' })
    runtime.recentLog.add('{"message":"hidden"}', 'debug')
    runtime.recentLog.add('{"message":"new"}', 'error')
    expect(JSON.parse((await reader?.read())?.value ?? '')).toEqual({ number: 3, message: 'new' })
    await reader?.cancel()
  })

  test('ends once the device is revoked', async () => {
    const { request, operator, runtime, store, clock } = await arrange()
    const response = await request('/api/logs/follow', { headers: { authorization: `Bearer ${operator.token}` } })
    const text = response.text()
    runtime.recentLog.add('{"message":"before"}', 'info')
    await store.devices.revoke(operator.device)
    await clock.advance(1000)
    await expect(text).resolves.toBe('{"number":1,"message":"before"}\n')
  })
})

describe('channels', () => {
  const channel = {
    name: 'slack',
    allow: ['U1'],
    limits: { text: 4000, unit: 'utf16' },
    missingConfig: 'bot_token',
    notifications: { target: 'messenger', opensThreads: false, account: 'main', to: { to: 'C1' }, key: 'notify' },
    send: async () => ({}),
  } as unknown as Channel

  test('are listed with the settings that they lack and with their gaps', async () => {
    const { call, runtime } = await arrange({ snapshot: { channels: [channel] } })
    runtime.bus.emit({ type: 'channel_gap', channel: 'slack', since: null, why: 'the platform keeps no history' })
    const { body } = await call('GET', '/api/channels')
    expect(body.channels).toMatchObject([
      { channel: 'slack', missing: 'bot_token', target: 'messenger', notifies: true, allow: ['U1'], gaps: [{ since: null }] },
    ])
  })

  test('name the feature that has built them: of two that share a section, the one that is ready', async () => {
    const feature = (id: string, state: string) => ({ feature: id, kind: 'channel', configured: true, compiled: true, state, reason: null })
    const features = [
      feature('channel-chatapp', 'unconfigured'),
      feature('channel-chatapp-web', 'ready'),
      feature('channel-voice-call', 'ready'),
    ]
    const channels = ['chatapp', 'voice_call', 'own'].map((name) => ({ ...channel, name }))
    const { call } = await arrange({ snapshot: { channels, features: features as never } })
    const { body } = await call('GET', '/api/channels')
    expect(body.channels).toMatchObject(['channel-chatapp-web', 'channel-voice-call', 'channel-own'].map((feature) => ({ feature })))
  })

  test('send a test message through the outbox', async () => {
    const queued: unknown[] = []
    const { call, store } = await arrange({ snapshot: { channels: [channel] }, queued: (replies) => queued.push(...replies) })
    const { status, body } = await call('POST', '/api/channels/slack/test', { text: 'is this on?' })
    expect([status, body]).toEqual([200, { queued: true, replies: [1] }])
    expect(await store.outbox.get(1)).toMatchObject({ channel: 'slack', text: expect.stringContaining('is this on?'), to: { to: 'C1' } })
    expect(queued).toHaveLength(1)
    expect((await call('POST', '/api/channels/irc/test', {})).status).toBe(404)
  })
})

describe('turns', () => {
  test('are listed for their own device, and from all devices for operators', async () => {
    const { call, client } = await arrange()
    await call('POST', '/webhook', { message: 'one' })
    await call('POST', '/webhook', { message: 'two' }, client.token)
    const ids = async (path: string, token?: string) => {
      const { body } = await call('GET', path, undefined, token)
      return { ids: (body.turns as { turn_id: string }[]).map(({ turn_id }) => turn_id), next: body.next as string | null }
    }
    expect((await ids('/api/turns', client.token)).ids).toEqual(['turn-2'])
    const first = await ids('/api/turns?limit=1')
    expect(first.ids).toHaveLength(1)
    const second = await ids(`/api/turns?limit=1&cursor=${first.next}`)
    expect([...first.ids, ...second.ids].toSorted()).toEqual(['turn-1', 'turn-2'])
    expect((await ids('/api/turns?status=failed')).ids).toEqual([])
    expect((await call('GET', '/api/turns?cursor=bad')).status).toBe(400)
  })
})

test('an operator who reads the conversation of another person is recorded, once in ten minutes', async () => {
  const { call, client, operator, audited, clock, request } = await arrange()
  await call('POST', '/webhook', { message: 'mine' })
  await request('/webhook', {
    method: 'POST',
    headers: { authorization: `Bearer ${client.token}`, 'content-type': 'application/json', 'x-session-id': 'private' },
    body: '{"message":"private"}',
  })
  const session = `${client.device}/private`
  const path = `/api/sessions/${encodeURIComponent(session)}`
  expect((await call('GET', '/api/sessions/private/messages', undefined, client.token)).status).toBe(200)
  expect(await audited()).toEqual([])
  expect((await call('GET', `${path}/messages`)).status).toBe(200)
  expect((await call('GET', `${path}/messages`)).status).toBe(200)
  const record = { kind: 'conversation_read', by: `device:${operator.device}`, detail: { session } }
  expect(await audited()).toEqual([record])
  await clock.advance(11 * 60_000)
  await call('GET', `${path}/messages`)
  expect(await audited()).toEqual([record, record])
})

test('the providers that this build can set up are listed with their address and the variable of their key', async () => {
  const instance = (state: string, ...providers: readonly object[]) => ({ state: () => state, parts: { providers } })
  const instances = [
    instance(
      'ready',
      { kinds: ['groq'], usual: { baseUrl: 'https://groq.example/v1', keyVariable: 'GROQ_API_KEY' } },
      { kinds: ['offline'] },
    ),
    instance('ready', { kinds: ['azure', 'vllm'], usual: {} }),
    instance('failed', { kinds: ['google'], usual: {} }),
  ]
  const { call } = await arrange({ snapshot: { instances: instances as never } })
  expect((await call('GET', '/api/models/providers')).body).toEqual({
    providers: [
      { kind: 'groq', base_url: 'https://groq.example/v1', key_variable: 'GROQ_API_KEY' },
      { kind: 'azure', base_url: null, key_variable: null },
      { kind: 'vllm', base_url: null, key_variable: null },
    ],
  })
})

describe('the models of an endpoint that is not saved', () => {
  const { registry } = testSnapshot()
  const offering = (offered: (settings: unknown) => Promise<unknown>) => ({
    snapshot: { registry: { ...registry, models: { ...registry.models, offered: offered as never } } },
  })
  const endpoint = { kind: 'openai', base_url: 'http://127.0.0.1:9/v1', api_key: 'hunter2-key' }

  test('are listed', async () => {
    const asked: unknown[] = []
    const { call } = await arrange(
      offering(async (settings) => {
        asked.push(settings)
        return [{ id: 'small', contextTokens: 8000 }]
      }),
    )
    expect((await call('POST', '/api/models/offered', { endpoint })).body).toEqual({
      models: [{ id: 'small', context_tokens: 8000, price: null, in_use: [] }],
      error: null,
    })
    expect(asked).toMatchObject([{ kind: 'openai', base_url: 'http://127.0.0.1:9/v1' }])
  })

  test('shows why the endpoint refuses, without the key', async () => {
    const { call, request } = await arrange(
      offering(async () => {
        throw new AppError('unauthorized', 'The key hunter2-key is not known')
      }),
    )
    expect((await call('POST', '/api/models/offered', { endpoint })).body).toEqual({ models: null, error: 'The key *** is not known' })
    expect((await request('/api/models/offered', { method: 'POST', body: JSON.stringify({ endpoint }) })).status).toBe(401)
  })
})
