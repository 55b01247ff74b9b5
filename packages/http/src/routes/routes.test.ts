import type { Health } from '@sluice/runtime/health-answer'
import { type Channel, SHARED_MEMORIES, UNOWNED_MEMORIES } from '@sluice/sdk'
import { turnEnd } from '@sluice/testkit/store-rules/samples'
import { describe, expect, test } from 'vitest'
import { type TestGatewayOptions, testGateways } from '../testing.ts'

const gateway = testGateways()

async function paired(options: TestGatewayOptions = {}) {
  const made = gateway(options)
  const { token, device } = await made.pair('mine')
  const call = (method: string, path: string, body?: unknown, bearer = token) =>
    made.request(path, {
      method,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  const json = async (method: string, path: string, body?: unknown) => (await call(method, path, body)).json()
  const say = (session: string, message: string, bearer = token) =>
    made.request('/webhook', {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json', 'x-session-id': session },
      body: JSON.stringify({ message }),
    })
  return { ...made, token, device, call, json, say }
}

describe('memories', () => {
  test('are listed, shown and deleted only for the device that they belong to', async () => {
    const { store, device, json, call, pair } = await paired()
    const other = await pair('other')
    for (const key of ['a/b', 'c'])
      await store.memory.put({ owner: `device:${device}`, key, content: `mine ${key}`, category: 'core', untrusted: false, atMs: 0 })
    await store.memory.put({ owner: `device:${other.device}`, key: 'c', content: 'theirs', category: 'core', untrusted: false, atMs: 0 })
    const slash = encodeURIComponent('a/b')
    const first = (await json('GET', '/api/memories?limit=1')) as { next: string }
    expect(first).toEqual({
      memories: [
        {
          owner: `device:${device}`,
          key: 'a/b',
          category: 'core',
          content: 'mine a/b',
          untrusted: false,
          updated_at: '1970-01-01T00:00:00.000Z',
        },
      ],
      next: expect.any(String),
    })
    expect(await json('GET', `/api/memories?cursor=${first.next}`)).toMatchObject({ memories: [{ key: 'c' }], next: null })
    expect(await json('GET', `/api/memories?after=${slash}`)).toMatchObject({ memories: [{ key: 'c', content: 'mine c' }] })
    expect(await json('GET', `/api/memories/${slash}`)).toMatchObject({ content: 'mine a/b' })
    expect((await call('GET', `/api/memories/${slash}`, undefined, other.token)).status).toBe(404)
    expect((await call('DELETE', `/api/memories/${slash}`, undefined, other.token)).status).toBe(404)
    expect(await json('DELETE', '/api/memories/c')).toEqual({ deleted: true, key: 'c' })
    expect((await call('DELETE', '/api/memories/c')).status).toBe(404)
    expect((await call('GET', '/api/memories/c', undefined, other.token)).status).toBe(200)
  })
})

describe('the memories of others', () => {
  const seeded = async () => {
    const made = await paired()
    const client = await made.pair('client', null, 'client')
    const put = (owner: string, key: string, content = `${key} of ${owner}`) =>
      made.store.memory.put({ owner, key, content, category: 'core', untrusted: false, atMs: 0 })
    for (const [owner, key] of [
      [UNOWNED_MEMORIES, 'a'],
      [UNOWNED_MEMORIES, 'b'],
      [UNOWNED_MEMORIES, 'c'],
      [SHARED_MEMORIES, 'rule'],
      ['cli', 'a'],
      ['channel:testchat/bot/ann%2F1', 'a'],
    ] as const)
      await put(owner, key)
    return { ...made, client, put }
  }

  test('are listed with their owners for an operator', async () => {
    const { json } = await seeded()
    const list = async (query: string) => ((await json('GET', `/api/memories?${query}`)) as { memories: unknown[] }).memories
    expect(await list('all=true')).toMatchObject([
      { owner: 'unowned', key: 'a' },
      { owner: 'unowned', key: 'b' },
      { owner: 'unowned', key: 'c' },
      { owner: 'shared', key: 'rule' },
      { owner: 'channel:testchat/bot/ann%2F1', key: 'a' },
      { owner: 'cli', key: 'a' },
    ])
    expect(await list('owner=shared')).toMatchObject([{ owner: 'shared', key: 'rule', content: `rule of ${SHARED_MEMORIES}` }])
    expect(await json('GET', '/api/memories/a?owner=cli')).toMatchObject({ owner: 'cli', content: 'a of cli' })
    expect(await json('GET', '/api/memory-owners')).toEqual({
      owners: [
        { owner: 'unowned', count: 3 },
        { owner: 'shared', count: 1 },
        { owner: 'channel:testchat/bot/ann%2F1', count: 1 },
        { owner: 'cli', count: 1 },
      ],
      next: null,
    })
    const first = (await json('GET', '/api/memory-owners?limit=3')) as { owners: unknown[]; next: string }
    expect(first.owners).toHaveLength(3)
    expect(await json('GET', `/api/memory-owners?limit=3&cursor=${first.next}`)).toEqual({
      owners: [{ owner: 'cli', count: 1 }],
      next: null,
    })
  })

  test('are neither shown to a client nor removed by it', async () => {
    const { call, client, store } = await seeded()
    for (const [method, path] of [
      ['GET', '/api/memories?all=true'],
      ['GET', '/api/memories?owner=cli'],
      ['GET', '/api/memories/a?owner=cli'],
      ['DELETE', '/api/memories/a?owner=cli'],
    ] as const)
      expect((await call(method, path, undefined, client.token)).status, `${method} ${path}`).toBe(403)
    expect((await call('GET', `/api/memories?owner=device:${client.device}`, undefined, client.token)).status).toBe(200)
    expect(await store.memory.get('cli', 'a')).toBeDefined()
  })

  test('are removed one by one, or all of one owner', async () => {
    const { json, call, store } = await seeded()
    expect(await json('DELETE', '/api/memories/a?owner=unowned')).toEqual({ deleted: true, key: 'a' })
    expect(await json('DELETE', '/api/memories?owner=unowned')).toEqual({ deleted: 2, owner: 'unowned' })
    expect(await store.memory.owners({ limit: 10 })).not.toContainEqual(expect.objectContaining({ owner: UNOWNED_MEMORIES }))
    expect(await store.memory.get('cli', 'a')).toBeDefined()
    expect((await call('DELETE', '/api/memories')).status).toBe(400)
  })

  test('are assigned to a client that exists, without overwriting', async () => {
    const { json, call, device, put, store } = await seeded()
    const to = `device:${device}`
    await put(to, 'a', 'mine')
    expect(await json('POST', '/api/memories/assign', { to: 'shared', key: 'c' })).toEqual({
      from: 'unowned',
      to: 'shared',
      assigned: 1,
      left: 0,
    })
    expect(await json('POST', '/api/memories/assign', { to })).toEqual({ from: 'unowned', to, assigned: 1, left: 1 })
    expect(await store.memory.get(to, 'a')).toMatchObject({ content: 'mine' })
    expect(await store.memory.get(to, 'b')).toBeDefined()
    expect((await call('POST', '/api/memories/assign', { to: 'device:nobody' })).status).toBe(404)
    expect(await json('POST', '/api/memories/assign', { to: 'alice' })).toMatchObject({ error: expect.stringContaining("got 'alice'") })
  })
})

describe('sessions', () => {
  test('are listed most recently active first, in pages', async () => {
    const { say, json, clock } = await paired()
    for (const session of ['a', 'b', 'c']) {
      await say(session, 'hello')
      await clock.advance(1000)
    }
    const first = (await json('GET', '/api/sessions?limit=2')) as { sessions: { session_id: string; last_activity: string }[] }
    expect(first.sessions).toMatchObject([{ session_id: 'c', name: null, message_count: 2 }, { session_id: 'b' }])
    const before = encodeURIComponent(first.sessions[1]?.last_activity ?? '')
    expect(await json('GET', `/api/sessions?limit=2&before=${before}`)).toMatchObject({ sessions: [{ session_id: 'a' }] })
  })

  test('are found by words in their name, page by page', async () => {
    const { say, json } = await paired()
    for (const name of ['a', 'b', 'c']) await say(name, 'one')
    for (const [id, name] of [
      ['a', 'Plans of Ada'],
      ['b', 'Kitchen'],
      ['c', 'more PLANS'],
    ])
      await json('PUT', `/api/sessions/${id}`, { name })
    const found = (await json('GET', '/api/sessions?find=plans&limit=1')) as { sessions: { session_id: string }[]; next: string }
    const rest = await json('GET', `/api/sessions?find=plans&limit=1&cursor=${found.next}`)
    const ids = [found, rest as typeof found].flatMap(({ sessions }) => sessions.map(({ session_id }) => session_id))
    expect(ids.toSorted()).toEqual(['a', 'c'])
    expect(await json('GET', '/api/sessions?find=nothing')).toEqual({ sessions: [], next: null })
  })

  test('show their messages, oldest first', async () => {
    const { say, json } = await paired()
    await say('a', 'one')
    await say('a', 'two')
    const at = '2026-01-01T00:00:00.000Z'
    expect(await json('GET', '/api/sessions/a/messages?limit=3')).toEqual({
      session_id: 'a',
      messages: [
        { at, role: 'assistant', content: 're: one' },
        { at, role: 'user', content: 'two' },
        { at, role: 'assistant', content: 're: two' },
      ],
    })
  })

  test('can be named and erased', async () => {
    const { say, json, call } = await paired()
    await say('a', 'one')
    expect(await json('PUT', '/api/sessions/a', { name: ' Kitchen ' })).toEqual({ session_id: 'a', name: 'Kitchen' })
    expect(await json('GET', '/api/sessions/a')).toMatchObject({ session_id: 'a', name: 'Kitchen' })
    expect(await json('DELETE', '/api/sessions/a')).toMatchObject({
      deleted: true,
      session_id: 'a',
      erased: { said: 1, turns: 1, copies: [] },
    })
    expect((await call('GET', '/api/sessions/a')).status).toBe(404)
  })

  test('are paged by a cursor, also if several were active at the same time', async () => {
    const { say, json } = await paired()
    for (const session of ['a', 'b', 'c']) await say(session, 'hello')
    const seen: string[] = []
    for (let path: string | undefined = '/api/sessions?limit=2'; path; ) {
      const page = (await json('GET', path)) as { sessions: { session_id: string }[]; next: string | null }
      seen.push(...page.sessions.map(({ session_id }) => session_id))
      path = page.next === null ? undefined : `/api/sessions?limit=2&cursor=${page.next}`
    }
    expect(seen).toEqual(['c', 'b', 'a'])
  })

  test('are exported as one line per message', async () => {
    const { say, call } = await paired()
    await say('a', 'one')
    await say('a', 'two')
    const lines = (await (await call('GET', '/api/sessions/a/export')).text()).trim().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { at: expect.any(String), role: 'user', content: 'one' },
      { role: 'assistant', content: 're: one' },
      { role: 'user', content: 'two' },
      { role: 'assistant', content: 're: two' },
    ])
  })

  test('show and export their summary', async () => {
    const { store, device, say, json, call } = await paired()
    await say('a', 'one')
    expect(await json('GET', '/api/sessions/a')).toMatchObject({ session_id: 'a', summary: null })
    const summary = { text: 'They met.', upTo: 1, upToMs: 0, model: 'small', atMs: 0, untrusted: true }
    await store.sessions.summarize(`${device}/a`, { upTo: 2, summary: undefined }, summary)
    const at = '1970-01-01T00:00:00.000Z'
    expect(await json('GET', '/api/sessions/a')).toMatchObject({
      message_count: 2,
      summary: { text: 'They met.', messages: 1, model: 'small', at, untrusted: true },
    })
    const lines = (await (await call('GET', '/api/sessions/a/export')).text()).trim().split('\n')
    expect(lines).toHaveLength(3)
    expect(JSON.parse(lines[2] ?? '')).toEqual({ at, role: 'summary', content: 'They met.', messages: 1 })
  })

  test('of channels are listed, exported and erased only for operators', async () => {
    const { store, json, call, pair } = await paired()
    const session = 'channel:chatapp/2000/%2B1555/%2B1555'
    const messages = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'private' }] }]
    const other = session.replaceAll('1555', '1666')
    for (const id of [session, other]) await store.turns.finish(turnEnd(`turn of ${id}`, { sessionId: id, messages }))
    await store.memory.put({
      owner: 'channel:chatapp/2000/%2B1555',
      key: 'birthday',
      content: 'May',
      category: 'core',
      untrusted: false,
      atMs: 1,
    })
    const found = '/api/sessions?channel=chatapp&sender=%2B1555'
    expect(await json('GET', found)).toMatchObject({ sessions: [{ session_id: session, channel: 'chatapp', sender: '+1555' }], next: null })
    expect(await json('GET', '/api/sessions?all=true')).toMatchObject({ sessions: [{}, {}] })
    const path = `/api/sessions/${encodeURIComponent(session)}`
    expect(await (await call('GET', `${path}/export`)).text()).toContain('private')
    const client = await pair('client', null, 'client')
    for (const [method, url] of [
      ['GET', found],
      ['GET', '/api/sessions?all=true'],
      ['DELETE', found],
    ] as const)
      expect((await call(method, url, undefined, client.token)).status, url).toBe(403)
    expect((await call('DELETE', path, undefined, client.token)).status).toBe(400)
    expect(await json('DELETE', found)).toMatchObject({ deleted: true, erased: { said: 1, memories: 1 } })
    expect(await store.sessions.get(session)).toBeUndefined()
    expect(await store.sessions.get(other)).toBeDefined()
    expect(await store.memory.search('channel:chatapp/2000/%2B1555', '', 5)).toEqual([])
    expect((await call('DELETE', found)).status).toBe(404)
    expect(await json('DELETE', `/api/sessions/${encodeURIComponent(other)}`)).toMatchObject({ erased: { said: 1 } })
  })

  test('are private to their device', async () => {
    const made = await paired()
    const other = await made.pair('other', null, 'client')
    await made.say('a', 'mine')
    await made.say('a', 'theirs', other.token)
    await made.say('b', 'mine alone')
    const asOther = (method: string, path: string, body?: unknown) => made.call(method, path, body, other.token)
    expect(await (await asOther('GET', '/api/sessions')).json()).toMatchObject({ sessions: [{ session_id: 'a', message_count: 2 }] })
    expect(await (await asOther('GET', '/api/sessions/a/messages')).json()).toMatchObject({ messages: [{ content: 'theirs' }, {}] })
    for (const path of ['/api/sessions/b', '/api/sessions/b/messages', `/api/sessions/${made.device}%2Fb`]) {
      expect([400, 404], path).toContain((await asOther('GET', path)).status)
    }
    expect((await asOther('PUT', '/api/sessions/b', { name: 'x' })).status).toBe(404)
    expect((await asOther('DELETE', '/api/sessions/b')).status).toBe(404)
    expect((await asOther('GET', '/api/turns/turn-1')).status).toBe(404)
    expect((await asOther('POST', '/api/turns/turn-1/abort')).status).toBe(404)
  })

  test.each<[method: string, path: string, body?: unknown]>([
    ['GET', '/api/sessions?limit=0'],
    ['GET', '/api/sessions?limit=201'],
    ['GET', '/api/sessions?limit=ten'],
    ['GET', '/api/sessions?before=yesterday'],
    ['GET', '/api/sessions/a%20b'],
    ['PUT', '/api/sessions/a', {}],
    ['PUT', '/api/sessions/a', { name: '' }],
    ['PUT', '/api/sessions/a', { name: 'n'.repeat(201) }],
    ['PUT', '/api/sessions/a', []],
  ])('%s %s is 400', async (method, path, body) => {
    const { call } = await paired()
    const response = await call(method, path, body)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_request' })
  })
})

describe('turns', () => {
  test('show their result', async () => {
    const { say, json } = await paired()
    await say('a', 'hello')
    expect(await json('GET', '/api/turns/turn-1')).toMatchObject({
      turn_id: 'turn-1',
      status: 'done',
      source: 'webhook',
      session_id: 'a',
      response: 're: hello',
      error: null,
      created_at: '2026-01-01T00:00:00.000Z',
    })
  })

  test('are aborted while they run; ended ones are 409, unknown ones 404', async () => {
    const { say, call, json } = await paired()
    await say('a', 'hello')
    expect(await json('POST', '/api/turns/turn-running/abort')).toEqual({ aborted: true, turn_id: 'turn-running' })
    expect((await call('POST', '/api/turns/turn-1/abort')).status).toBe(409)
    expect((await call('POST', '/api/turns/nothing/abort')).status).toBe(404)
    expect((await call('GET', '/api/turns/nothing')).status).toBe(404)
  })
})

describe('devices', () => {
  test('are listed without their tokens', async () => {
    const { json, device, token } = await paired()
    const list = await json('GET', '/api/devices')
    expect(list).toMatchObject({ count: 1, devices: [{ id: device, name: 'mine', expires_at: null }] })
    expect(JSON.stringify(list)).not.toContain(token.slice(7))
  })

  test('are refused from the next request on once they are revoked', async () => {
    const { call, json, pair, runtime } = await paired()
    const other = await pair('other')
    expect((await call('GET', '/api/status', undefined, other.token)).status).toBe(200)
    expect(await json('DELETE', `/api/devices/${other.device}`)).toMatchObject({ device_id: other.device })
    expect((await call('GET', '/api/status', undefined, other.token)).status).toBe(401)
    expect((await call('DELETE', `/api/devices/${other.device}`)).status).toBe(404)
    expect(runtime.bus.recent(1)).toMatchObject([{ envelope: { type: 'device_revoked', device_id: other.device } }])
  })

  test('are admitted only with the new token after a rotation', async () => {
    const { call, json, device, token } = await paired()
    await call('GET', '/api/status')
    const rotated = (await json('POST', `/api/devices/${device}/token/rotate`)) as { token: string }
    expect(rotated).toMatchObject({ device_id: device })
    expect((await call('GET', '/api/status', undefined, token)).status).toBe(401)
    expect((await call('GET', '/api/status', undefined, rotated.token)).status).toBe(200)
    expect((await call('POST', '/api/devices/nobody/token/rotate', undefined, rotated.token)).status).toBe(404)
  })

  test('can create a pairing code for another device', async () => {
    const { json, request } = await paired()
    const { pairing_code } = (await json('POST', '/api/pairing/initiate')) as { pairing_code: string }
    expect((await request('/pair', { method: 'POST', headers: { 'x-pairing-code': pairing_code } })).status).toBe(200)
  })
})

describe('status', () => {
  const failed = {
    feature: 'tool-pdf',
    flag: null,
    kind: 'tool',
    compiled: true,
    installed: true,
    configured: true,
    state: 'failed',
    reason: 'broken',
    build: null,
  } as const
  const tool = { name: 'shell', description: 'Run a command', feature: 'tool-shell', available: true, compiled: true, build: null } as const

  test('describes the daemon', async () => {
    const { json, clock } = await paired()
    await clock.advance(61_000)
    expect(await json('GET', '/api/status')).toMatchObject({
      version: '0.0.0',
      profile: 'test',
      cluster: null,
      uptime_seconds: 61,
      require_pairing: true,
      paired_devices: 1,
    })
  })

  test('lists tools and features, and is degraded by a failed feature', async () => {
    const { json } = await paired({ snapshot: { features: [failed], tools: [tool] } })
    expect(await json('GET', '/api/tools')).toEqual({ tools: [tool] })
    expect(await json('GET', '/api/features')).toEqual({ features: [{ ...failed, summary: expect.any(String) }] })
    expect(await json('GET', '/api/health')).toMatchObject({ status: 'degraded', failed: [{ feature: 'tool-pdf', reason: 'broken' }] })
    expect(await (await paired()).json('GET', '/api/health')).toMatchObject({ status: 'ok', failed: [] })
    const channel = { name: 'x', health: () => ({ state: 'down', detail: 'the token is refused', lastSentAtMs: 0 }) } as unknown as Channel
    expect(await (await paired({ snapshot: { channels: [channel] } })).json('GET', '/api/health')).toMatchObject({
      status: 'degraded',
      channels: [
        { channel: 'x', state: 'down', detail: 'the token is refused', last_event_at: null, last_sent_at: '1970-01-01T00:00:00.000Z' },
      ],
    })
  })

  test('is degraded by a store that cannot write and by a broken link', async () => {
    const { json, runtime } = await paired()
    const wrong = {
      store: { state: 'failing', reason: 'database or disk is full' },
      links: [{ name: 'mqtt', state: 'down' }],
    } satisfies Partial<Health>
    const look = runtime.health.look
    runtime.health.look = () => ({ ...look(), ...wrong, status: 'degraded' })
    expect(await json('GET', '/api/health')).toMatchObject({ ...wrong, status: 'degraded', failed: [] })
  })

  test('shows the kept events, oldest first', async () => {
    const { json, runtime } = await paired()
    for (const n of [1, 2, 3]) runtime.bus.emit({ type: 'x_test', n })
    expect(await json('GET', '/api/events/history?limit=2')).toMatchObject({
      events: [
        { n: 2, id: 'test-2' },
        { n: 3, id: 'test-3' },
      ],
    })
  })
})
