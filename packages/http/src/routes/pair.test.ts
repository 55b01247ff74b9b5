import { newPairingCode } from '@sluice/runtime'
import { describe, expect, test } from 'vitest'
import { type TestGateway, type TestRequest, testGateways } from '../testing.ts'

const gateway = testGateways()

const codeOf = async ({ store, clock, runtime }: TestGateway): Promise<string> =>
  (await newPairingCode(store, runtime.snapshot().gateway, clock)).code
const pairBy = ({ request }: TestGateway, code: string, init: TestRequest = {}) =>
  request('/pair', { method: 'POST', headers: { 'x-pairing-code': code }, ...init })
const statusWith = async ({ request }: TestGateway, token: string): Promise<number> =>
  (await request('/api/status', { headers: { authorization: `Bearer ${token}` } })).status

describe('a pairing code', () => {
  test('has eight distinguishable characters and is unique', async () => {
    const made = gateway()
    const codes = await Promise.all(Array.from({ length: 50 }, () => codeOf(made)))
    for (const code of codes) expect(code).toMatch(/^[A-HJ-NP-Z2-9]{8}$/)
    expect(new Set(codes).size).toBe(50)
  })

  test('in the header is exchanged for a token once', async () => {
    const made = gateway()
    const code = await codeOf(made)
    const response = await pairBy(made, code)
    expect(response.status).toBe(200)
    const paired = (await response.json()) as { token: string; device_id: string }
    expect(paired).toEqual({
      paired: true,
      token: expect.stringMatching(/^sluice_[0-9a-f]{64}$/),
      device_id: expect.any(String),
      role: 'operator',
      message: expect.any(String),
    })
    expect(await statusWith(made, paired.token)).toBe(200)
    expect((await pairBy(made, code)).status).toBe(403)
    expect(made.runtime.bus.recent(1)).toMatchObject([{ envelope: { type: 'device_paired', device_id: paired.device_id } }])
  })

  test('gives the device the role of the code', async () => {
    const made = gateway()
    const { code } = await newPairingCode(made.store, made.runtime.snapshot().gateway, made.clock, 'client')
    const paired = (await (await pairBy(made, code)).json()) as { token: string }
    expect(paired).toMatchObject({ role: 'client' })
    expect(await statusWith(made, paired.token)).toBe(403)
    expect(await made.store.devices.list()).toMatchObject([{ role: 'client' }])
  })

  test('in the body may name the device', async () => {
    const made = gateway()
    const body = JSON.stringify({ code: await codeOf(made), device_name: ' Ada\u2019s phone ' })
    const response = await made.request('/pair', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    expect(response.status).toBe(200)
    expect(await made.store.devices.list()).toMatchObject([{ name: 'Ada\u2019s phone' }])
  })

  test('is required in the header or in the body', async () => {
    const response = await gateway().request('/pair', { method: 'POST' })
    expect([response.status, await response.json()]).toEqual([
      400,
      expect.objectContaining({ error: expect.stringContaining('X-Pairing-Code') }),
    ])
  })

  test('may be typed in lower case, with dashes and spaces', async () => {
    const made = gateway()
    const code = await codeOf(made)
    expect((await pairBy(made, ` ${code.slice(0, 4).toLowerCase()}-${code.slice(4)} `)).status).toBe(200)
  })

  test('is refused after its time to live', async () => {
    const made = gateway({ config: { pairing_code_ttl_secs: 60 } })
    const code = await codeOf(made)
    await made.clock.advance(60_000)
    expect((await pairBy(made, code)).status).toBe(403)
  })

  test('is one of at most three: a fourth replaces the first', async () => {
    const made = gateway()
    const [first = '', second = ''] = [await codeOf(made), await codeOf(made)]
    await codeOf(made)
    await codeOf(made)
    expect((await pairBy(made, first)).status).toBe(403)
    expect((await pairBy(made, second)).status).toBe(200)
  })
})

describe('guessing a pairing code', () => {
  test('locks an address out for 300 s after five wrong codes', async () => {
    const made = gateway({ config: { pair_rate_limit_per_minute: 0 } })
    const code = await codeOf(made)
    for (let tries = 0; tries < 5; tries++) {
      const wrong = await pairBy(made, 'WRONGXYZ')
      expect(wrong.status).toBe(403)
      expect(await wrong.json()).toEqual({ error: expect.any(String), code: 'forbidden' })
    }
    const locked = await pairBy(made, code)
    expect([locked.status, locked.headers.get('retry-after')]).toEqual([429, '300'])
    expect((await pairBy(made, code, { peer: '203.0.113.9' })).status, 'others are not meant').toBe(200)
  })

  test('drops every pending code after thirty wrong codes in five minutes', async () => {
    const made = gateway({ config: { pair_rate_limit_per_minute: 0 } })
    const code = await codeOf(made)
    for (let tries = 0; tries < 30; tries++) await pairBy(made, 'WRONGXYZ', { peer: `203.0.113.${tries}` })
    expect((await pairBy(made, code, { peer: '198.51.100.1' })).status).toBe(403)
    expect(made.logs).toContainEqual(expect.objectContaining({ level: 'error', message: expect.stringContaining('pairing code') }))
    const next = await codeOf(made)
    expect((await pairBy(made, next, { peer: '198.51.100.1' })).status).toBe(200)
  })

  test('is limited per minute and address', async () => {
    const made = gateway({ config: { pair_rate_limit_per_minute: 2 } })
    await pairBy(made, 'WRONGXYZ')
    await pairBy(made, 'WRONGXYZ')
    const limited = await pairBy(made, await codeOf(made))
    expect(limited.status).toBe(429)
    expect(await limited.json()).toEqual({ error: 'Too Many Requests', code: 'rate_limited', retry_after: 60 })
  })

  test('cannot read a code: GET /pair/code does not exist', async () => {
    const made = gateway()
    await codeOf(made)
    expect((await made.request('/pair/code')).status).toBe(404)
  })
})

test.each<[string, TestRequest]>([
  ['no code at all', { headers: {} }],
  ['no code in the body', { headers: { 'content-type': 'application/json' }, body: '{}' }],
  ['a body that is not JSON', { headers: { 'content-type': 'application/json' }, body: 'code' }],
  ['a name that is not a text', { headers: { 'content-type': 'application/json' }, body: '{"code":"ABCDEFGH","device_name":1}' }],
  ['a name with a line break', { headers: { 'content-type': 'application/json' }, body: '{"code":"ABCDEFGH","device_name":"a\\nb"}' }],
  [
    'a name of 101 characters',
    { headers: { 'content-type': 'application/json' }, body: JSON.stringify({ code: 'ABCDEFGH', device_name: 'n'.repeat(101) }) },
  ],
])('%s is 400 and no guess', async (_what, init) => {
  const made = gateway({ config: { pair_rate_limit_per_minute: 0 } })
  for (let tries = 0; tries < 6; tries++) expect((await made.request('/pair', { method: 'POST', ...init })).status).toBe(400)
})

test('a page of another origin cannot pair', async () => {
  const made = gateway()
  const headers = { 'x-pairing-code': await codeOf(made), origin: 'https://evil.example' }
  expect((await made.request('/pair', { method: 'POST', headers })).status).toBe(403)
})
