/** The audit log has a record of everything that an operator changes over the API. A new route must be put into one of the two tables. */
import { type AuditKind, type Channel, SHARED_MEMORIES } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { testGateways } from './testing.ts'

const gateway = testGateways()

interface Change {
  readonly kind: AuditKind
  readonly body?: object
  readonly query?: string
  readonly detail: object
}

/** A name instead of a change: the tests of that part prove its records. */
const RECORDED: Readonly<
  Record<string, Change | 'procedures' | 'deliveries' | 'configuration' | 'hardware' | 'cluster' | 'conversations'>
> = {
  'POST /api/pairing/initiate': { kind: 'pairing_code_created', query: '?role=client', detail: { role: 'client' } },
  'POST /api/devices': {
    kind: 'device_added',
    body: { name: 'phone', role: 'client' },
    detail: { device: expect.any(String), role: 'client' },
  },
  'POST /api/devices/{id}/token/rotate': { kind: 'token_replaced', detail: { device: 'other' } },
  'DELETE /api/devices/{id}': { kind: 'device_revoked', detail: { device: 'other' } },
  'POST /api/channels/{channel}/link': { kind: 'channel_linked', body: {}, detail: { channel: 'phone' } },
  'DELETE /api/channels/{channel}/link': { kind: 'channel_unlinked', detail: { channel: 'phone' } },
  'DELETE /api/memories': { kind: 'memories_deleted', query: '?owner=shared', detail: { owner: 'shared', deleted: 2 } },
  'POST /api/memories/assign': {
    kind: 'memories_assigned',
    body: { from: 'shared', to: 'cli', key: 'one' },
    detail: { from: 'shared', to: 'cli', assigned: 1 },
  },
  'PUT /api/rooms/{id}': {
    kind: 'room_changed',
    body: { respond: 'judge' },
    detail: { room: 'phone/bot/room', rule: { respond: 'judge' } },
  },
  'DELETE /api/rooms/{id}': 'conversations',
  'POST /api/limits/reset': { kind: 'limits_reset', body: { client: 'device:x' }, detail: { client: 'device:x' } },
  'POST /api/deliveries/inbox/{number}/replay': 'deliveries',
  'POST /api/deliveries/outbox/{number}/replay': 'deliveries',
  'POST /api/deliveries/inbox/replay': 'deliveries',
  'POST /api/deliveries/outbox/replay': 'deliveries',
  'POST /api/deliveries/inbox/{number}/discard': 'deliveries',
  'POST /api/deliveries/outbox/{number}/discard': 'deliveries',
  'POST /api/sops/runs/{id}/cancel': 'procedures',
  'POST /api/sops/runs/{id}/replay': 'procedures',
  'POST /api/sops/waiting/{folder}/accept': 'procedures',
  'POST /api/sops/adopt': 'procedures',
  'PUT /api/sop-files/{folder}': 'procedures',
  'PUT /api/config': 'configuration',
  'POST /api/hardware/stop': 'hardware',
  'POST /api/hardware/reset': 'hardware',
  'POST /api/cluster/nodes/{node}/drain': 'cluster',
  'POST /api/cluster/nodes/{node}/undrain': 'cluster',
  'DELETE /api/sessions': 'conversations',
}

/** Why a route needs no record. */
const UNRECORDED: Readonly<Record<string, string>> = {
  'POST /api/channels/{channel}/test': 'the outbox keeps the message',
  'POST /api/cluster/rebalance': 'nodes compare their shards every few seconds anyway',
  'POST /api/commands': 'the commands themselves record what they change',
  'POST /api/commands/{id}/input': 'the commands themselves record what they change',
  'POST /api/config/preview': 'nothing is saved',
  'POST /api/models/offered': 'nothing is changed',
  'POST /api/models/test': 'nothing is changed, and the costs show the call',
  'POST /api/process/stop': 'the log says who stopped the daemon',
  'POST /api/process/restart': 'the log says who restarted the daemon',
  'POST /api/process/reload': 'the file is not changed, and is read at each change anyway',
  'POST /api/rooms/{id}/try': 'nothing is run or stored',
  'POST /api/sops/simulate': 'nothing is run or stored',
  'POST /api/sop-files/{folder}/check': 'nothing is saved',
}

async function arrange() {
  const link = { status: async () => ({ state: 'unlinked' }), start: async () => ({ state: 'linking' }), unlink: async () => {} }
  const made = gateway({ snapshot: { channels: [{ name: 'phone', link }] as unknown as Channel[] } })
  const operator = await made.pair('operator')
  const other = await made.pair('other')
  const call = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${operator.token}`, 'content-type': 'application/json' }
    return made.request(path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  }
  for (const key of ['one', 'two'])
    await made.store.memory.put({ owner: SHARED_MEMORIES, key, content: 'x', category: 'core', untrusted: false, atMs: 0 })
  Object.assign(made.store.admissions, { reset: async () => true })
  return { ...made, operator, other, call }
}

test('every route with which only operators change something is recorded, or there is a reason why not', async () => {
  const { call } = await arrange()
  const { paths } = (await (await call('GET', '/api/openapi.json')).json()) as {
    paths: Record<string, Record<string, { security: { bearer: string[] }[] }>>
  }
  const changes = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { security }]) =>
      method !== 'get' && security.length === 1 && security[0]?.bearer.includes('operator') ? [`${method.toUpperCase()} ${path}`] : [],
    ),
  )
  expect(changes.toSorted()).toEqual([...Object.keys(RECORDED), ...Object.keys(UNRECORDED)].toSorted())
})

test.each(Object.entries(RECORDED).flatMap(([route, change]) => (typeof change === 'string' ? [] : [[route, change] as const])))(
  '%s is recorded with who did it',
  async (route, { kind, query = '', body, detail }) => {
    const { call, operator, other, store } = await arrange()
    const [method = '', path = ''] = route.split(' ')
    const answer = await call(
      method,
      path.replace('rooms/{id}', 'rooms/phone%2Fbot%2Froom').replace('{id}', other.device).replace('{channel}', 'phone') + query,
      body,
    )
    expect(answer.status, await answer.clone().text()).toBe(200)
    const expected = 'device' in detail && detail.device === 'other' ? { device: other.device } : detail
    expect((await store.sops.audit({ limit: 9 })).map((row) => ({ kind: row.kind, by: row.by, detail: row.detail }))).toEqual([
      { kind, by: `device:${operator.device}`, detail: expected },
    ])
  },
)

test('what changed nothing is not recorded', async () => {
  const { call, store } = await arrange()
  expect((await call('DELETE', '/api/devices/none')).status).toBe(404)
  expect((await call('POST', '/api/devices/none/token/rotate')).status).toBe(404)
  expect((await call('DELETE', '/api/memories?owner=cli')).status).toBe(200)
  expect((await call('POST', '/api/sops/adopt', {})).status).toBe(200)
  expect(await store.sops.audit({ limit: 9 })).toEqual([])
})

test('an operator who deletes the memory of another owner is recorded, and a client who deletes its own is not', async () => {
  const { call, request, pair, store, operator } = await arrange()
  const client = await pair('c', null, 'client')
  await store.memory.put({ owner: `device:${client.device}`, key: 'mine', content: 'x', category: 'core', untrusted: false, atMs: 0 })
  const own = await request('/api/memories/mine', { method: 'DELETE', headers: { authorization: `Bearer ${client.token}` } })
  expect(own.status).toBe(200)
  expect(await store.sops.audit({ limit: 9 })).toEqual([])
  expect((await call('DELETE', '/api/memories/one?owner=shared')).status).toBe(200)
  expect(await store.sops.audit({ limit: 9 })).toMatchObject([
    { kind: 'memories_deleted', by: `device:${operator.device}`, detail: { owner: 'shared', deleted: 1 } },
  ])
})
