import { describe, expect, test } from 'vitest'
import { routesOf, type TestGateway, testGateways } from '../testing.ts'

const gateway = testGateways()

/** Every route of the application except WebSockets, which answer only upgrades. */
const paths = (made: TestGateway) =>
  routesOf(made)
    .filter(({ path }) => !path.startsWith('/ws/'))
    .map(({ method, path }) => ({ method, path: path.replace(/:\w+/g, 'x') }))

const OPEN = new Set(['GET /health', 'GET /ready', 'GET /metrics', 'POST /pair'])
/** Routes for all processes of this machine. */
const LOCAL = new Set(['POST /api/channel-events'])

describe('every route with a credential', () => {
  const kinds: Record<string, (made: TestGateway) => Promise<Record<string, string>>> = {
    none: async () => ({}),
    empty: async () => ({ authorization: '' }),
    'an empty token': async () => ({ authorization: 'Bearer ' }),
    wrong: async () => ({ authorization: `Bearer sluice_${'0'.repeat(64)}` }),
    'another scheme': async () => ({ authorization: 'Basic dXNlcjpwYXNz' }),
    'a token in the query alone': async () => ({}),
    revoked: async ({ pair, store }) => {
      const { token, device } = await pair()
      await store.devices.revoke(device)
      return { authorization: `Bearer ${token}` }
    },
    expired: async ({ pair, clock }) => ({ authorization: `Bearer ${(await pair('old', clock.nowMs())).token}` }),
    'the hash in place of the token': async ({ pair, store }) => {
      await pair()
      const [device] = await store.devices.list()
      return { authorization: `Bearer ${device?.id}` }
    },
  }

  test.each(Object.entries(kinds))('that is %s answers 401, unless it needs none', async (_kind, headersOf) => {
    const made = gateway({ config: { webhook_rate_limit_per_minute: 0 }, withStreams: true })
    const { token } = await made.pair('right')
    const headers = await headersOf(made)
    for (const { method, path } of paths(made)) {
      const response = await made.request(`${path}?token=${token}`, { method, headers, ...(method === 'GET' ? {} : { body: '{}' }) })
      if (OPEN.has(`${method} ${path}`) || LOCAL.has(`${method} ${path}`)) expect(response.status, `${method} ${path}`).not.toBe(401)
      else {
        expect(response.status, `${method} ${path}`).toBe(401)
        expect(await response.json()).toMatchObject({ code: 'unauthorized' })
        expect(response.headers.get('www-authenticate')).toBe('Bearer')
      }
    }
  })

  test('that is valid never answers 401', async () => {
    const made = gateway({ config: { webhook_rate_limit_per_minute: 0 }, withStreams: true })
    const { token } = await made.pair()
    for (const { method, path } of paths(made)) {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const { status } = await made.request(path, { method, headers, ...(method === 'GET' ? {} : { body: '{}' }) })
      expect([200, 400, 404, 503], `${method} ${path} is ${status}`).toContain(status)
    }
  })

  test('of any kind never answers 401 while no pairing is required, but checks names', async () => {
    const made = gateway({ config: { require_pairing: false, webhook_rate_limit_per_minute: 0 }, withStreams: true })
    for (const { method, path } of paths(made)) {
      const body = method === 'GET' ? {} : { body: '{}' }
      expect((await made.request(path, { method, ...body })).status, `${method} ${path}`).not.toBe(401)
      const rebound = await made.request(path, { method, headers: { host: 'rebound.example' }, ...body })
      if (!OPEN.has(`${method} ${path}`)) expect(rebound.status, `${method} ${path}`).toBe(403)
    }
  })
})
