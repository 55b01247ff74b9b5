import { ROLES, type Role } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { testGateways } from './testing.ts'

const gateway = testGateways()

/** The least role of every route; `open` and `local` routes need no token. */
const ROUTES: Readonly<Record<string, Role | 'open' | 'local'>> = {
  'GET /health': 'open',
  'GET /ready': 'open',
  'GET /metrics': 'open',
  'POST /pair': 'open',
  'POST /webhook': 'client',
  'GET /api/events': 'client',
  'GET /ws/events': 'client',
  'GET /ws/chat': 'client',
  'POST /api/channel-events': 'local',
  'GET /api/status': 'operator',
  'GET /api/health': 'operator',
  'GET /api/doctor': 'operator',
  'GET /api/backups': 'operator',
  'GET /api/tools': 'client',
  'GET /api/callable-tools': 'client',
  'POST /api/tools/{name}/calls': 'client',
  'GET /api/calls/{id}': 'client',
  'GET /api/features': 'operator',
  'GET /api/events/history': 'client',
  'GET /api/messages': 'client',
  'GET /api/sessions': 'client',
  'DELETE /api/sessions': 'operator',
  'GET /api/sessions/{id}/export': 'client',
  'GET /api/sessions/{id}': 'client',
  'GET /api/sessions/{id}/messages': 'client',
  'GET /api/sessions/{id}/file': 'client',
  'PUT /api/sessions/{id}': 'client',
  'DELETE /api/sessions/{id}': 'client',
  'GET /api/limits': 'operator',
  'POST /api/limits/reset': 'operator',
  'GET /api/cluster': 'operator',
  'POST /api/cluster/nodes/{node}/drain': 'operator',
  'POST /api/cluster/nodes/{node}/undrain': 'operator',
  'POST /api/cluster/rebalance': 'operator',
  'GET /api/models': 'operator',
  'GET /api/models/providers': 'operator',
  'POST /api/models/test': 'operator',
  'POST /api/models/offered': 'operator',
  'GET /api/hardware': 'operator',
  'POST /api/hardware/stop': 'operator',
  'POST /api/hardware/reset': 'operator',
  'GET /api/rooms': 'operator',
  'GET /api/rooms/{id}': 'operator',
  'PUT /api/rooms/{id}': 'operator',
  'DELETE /api/rooms/{id}': 'operator',
  'POST /api/rooms/{id}/try': 'operator',
  'GET /api/people': 'operator',
  'POST /api/people/codes': 'client',
  'POST /api/people/links': 'client',
  'GET /api/people/{account}': 'client',
  'DELETE /api/people/{account}': 'client',
  'GET /api/memories': 'client',
  'GET /api/notices': 'operator',
  'DELETE /api/memories': 'operator',
  'POST /api/memories/assign': 'operator',
  'GET /api/memory-owners': 'operator',
  'GET /api/memories/{key}': 'client',
  'DELETE /api/memories/{key}': 'client',
  'GET /api/channels': 'operator',
  'POST /api/channels/{channel}/test': 'operator',
  'GET /api/config': 'operator',
  'PUT /api/config': 'operator',
  'GET /api/config/schema': 'operator',
  'POST /api/config/preview': 'operator',
  'GET /api/costs': 'operator',
  'GET /api/history': 'operator',
  'GET /api/logs': 'operator',
  'GET /api/logs/follow': 'operator',
  'POST /api/process/stop': 'operator',
  'POST /api/process/restart': 'operator',
  'POST /api/process/reload': 'operator',
  'GET /api/turns': 'client',
  'GET /api/turns/{id}': 'client',
  'GET /api/turns/{id}/stream': 'client',
  'POST /api/turns': 'client',
  'POST /api/attachments': 'client',
  'POST /api/turns/{id}/abort': 'client',
  'POST /api/commands': 'operator',
  'POST /api/commands/{id}/input': 'operator',
  'GET /api/deliveries': 'operator',
  'GET /api/deliveries/inbox': 'operator',
  'GET /api/deliveries/inbox/{number}': 'operator',
  'POST /api/deliveries/inbox/{number}/replay': 'operator',
  'POST /api/deliveries/inbox/replay': 'operator',
  'GET /api/deliveries/outbox': 'operator',
  'GET /api/deliveries/outbox/{number}': 'operator',
  'POST /api/deliveries/outbox/{number}/replay': 'operator',
  'POST /api/deliveries/inbox/{number}/discard': 'operator',
  'POST /api/deliveries/outbox/{number}/discard': 'operator',
  'POST /api/deliveries/outbox/replay': 'operator',
  'GET /api/approvals': 'client',
  'GET /api/approvals/{run}/{step}': 'client',
  'POST /api/approvals/{run}/{step}': 'client',
  'GET /api/sops': 'operator',
  'POST /api/sops/{name}/runs': 'client',
  'GET /api/sops/{name}/definition': 'operator',
  'GET /api/sops/problems': 'operator',
  'GET /api/sops/waiting': 'operator',
  'POST /api/sops/waiting/{folder}/accept': 'operator',
  'GET /api/sop-files/{folder}': 'operator',
  'POST /api/sop-files/{folder}/check': 'operator',
  'PUT /api/sop-files/{folder}': 'operator',
  'POST /api/sops/adopt': 'operator',
  'POST /api/sops/simulate': 'operator',
  'GET /api/sops/runs': 'client',
  'GET /api/sops/runs/{id}': 'client',
  'POST /api/sops/runs/{id}/cancel': 'operator',
  'POST /api/sops/runs/{id}/replay': 'operator',
  'GET /api/sops/audit': 'operator',
  'GET /api/sops/audit/verify': 'operator',
  'POST /api/pairing/initiate': 'operator',
  'GET /api/devices': 'operator',
  'GET /api/channels/{channel}/link': 'operator',
  'POST /api/channels/{channel}/link': 'operator',
  'DELETE /api/channels/{channel}/link': 'operator',
  'DELETE /api/devices/{id}': 'operator',
  'POST /api/devices': 'operator',
  'POST /api/devices/{id}/token/rotate': 'operator',
  'GET /api/openapi.json': 'client',
}

interface Operation {
  readonly security: readonly { readonly bearer: readonly Role[] }[]
  readonly responses: Readonly<Record<string, object>>
}

async function arrange() {
  const made = gateway({ withStreams: true })
  const tokens = { operator: (await made.pair('o', null, 'operator')).token, client: (await made.pair('c', null, 'client')).token }
  const call = async (route: string, token?: string): Promise<number> => {
    const [method = '', path = ''] = route.split(' ')
    // The paths name things that do not exist, so an admitted caller gets 400 or 404.
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
    const response = await made.request(path.replace(/\{\w+\}/g, '7'), { method, headers, ...(method === 'GET' ? {} : { body: '[]' }) })
    await response.body?.cancel()
    return response.status
  }
  const document = async () => {
    const response = await made.request('/api/openapi.json', { headers: { authorization: `Bearer ${tokens.client}` } })
    return (await response.json()) as { paths: Record<string, Record<string, Operation>> }
  }
  return { ...made, tokens, call, document }
}

test('the OpenAPI document states the role of every route in the table', async () => {
  const { document } = await arrange()
  const stated = Object.entries((await document()).paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { security, responses }]) => {
      const roles = security.flatMap(({ bearer }) => bearer)
      const least = ROLES.toReversed().find((role) => roles.includes(role)) ?? (responses[403] ? 'local' : 'open')
      return [`${method.toUpperCase()} ${path}`, least] as const
    }),
  )
  expect(Object.fromEntries(stated)).toEqual(ROUTES)
})

test.each(Object.entries(ROUTES))('%s admits the role %s and refuses lower ones', async (route, least) => {
  const { call, tokens } = await arrange()
  const needsToken = least === 'operator' || least === 'client'
  const refusals = [401, 403]
  if (needsToken) expect(await call(route)).toBe(401)
  else expect(refusals).not.toContain(await call(route))
  if (least === 'operator') expect(await call(route, tokens.client)).toBe(403)
  else expect(refusals).not.toContain(await call(route, tokens.client))
  expect(refusals).not.toContain(await call(route, tokens.operator))
})

test('a client sees the events of its own turns, an operator all of them', async () => {
  const { runtime, request, pair } = await arrange()
  const mine = await pair('mine', null, 'client')
  const operator = await pair('operator')
  const started = (turn_id: string) => ({ type: 'turn_started', turn_id, session_id: null, source: 'webhook' }) as const
  runtime.bus.emit(started('mine'), mine.device)
  runtime.bus.emit(started('theirs'), 'another-device')
  runtime.bus.emit(started('of-a-channel'))
  runtime.bus.emit({ type: 'device_revoked', device_id: 'x' })
  const shown = async (token: string): Promise<unknown[]> => {
    const response = await request('/api/events/history?limit=3', { headers: { authorization: `Bearer ${token}` } })
    const { events } = (await response.json()) as { events: { turn_id?: string; type: string }[] }
    return events.map(({ turn_id, type }) => turn_id ?? type)
  }
  expect(await shown(mine.token)).toEqual(['mine'])
  expect(await shown(operator.token)).toEqual(['theirs', 'of-a-channel', 'device_revoked'])
})

test('a client reads and aborts its own turns, an operator all of them', async () => {
  const { request, pair, tokens, parts } = await arrange()
  const mine = await pair('mine', null, 'client')
  const as = (token: string, method: string, path: string, body?: string) =>
    request(path, { method, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, ...(body ? { body } : {}) })
  const asked: (string | undefined)[] = []
  Object.assign(parts.runtime.agent, { requestAbort: async (_id: string, owner?: string) => asked.push(owner) > 0 })
  await as(mine.token, 'POST', '/webhook', '{"message":"hello"}')
  expect((await as(mine.token, 'GET', '/api/turns/turn-1')).status).toBe(200)
  expect((await as(tokens.client, 'GET', '/api/turns/turn-1')).status).toBe(404)
  expect((await as(tokens.client, 'POST', '/api/turns/turn-1/abort')).status).toBe(404)
  expect((await as(tokens.operator, 'GET', '/api/turns/turn-1')).status).toBe(200)
  await as(mine.token, 'POST', '/api/turns/turn-running/abort')
  await as(tokens.operator, 'POST', '/api/turns/turn-running/abort')
  expect(asked).toEqual([mine.device, undefined])
})
