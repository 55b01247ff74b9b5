/** Nodes of a cluster: how they share the shards of one schema on a real server. */

import { systemClock } from '@sluice/kit'
import { ShardOwnership } from '@sluice/ownership'
import { CLUSTER_ROLES, type ClusterMember, isLeaseLost, SHARDS, type Store, shardOfSession } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { openPostgresStore } from '../open-store.ts'
import { startProxy } from '../testing/cut-proxy.ts'
import { startPostgres, type TestServer } from '../testing/postgres-server.ts'
import { TTL_MS } from './membership.ts'

let server: TestServer
beforeAll(async () => {
  server = await startPostgres({ inMemory: true })
})
afterAll(() => server.stop())

const undo: (() => Promise<unknown>)[] = []
afterEach(async () => {
  while (undo.length > 0) await undo.pop()?.()
})

let schemas = 0

interface Node {
  readonly store: Store
  readonly ownership: ShardOwnership
  readonly held: () => number
}

async function start(schema: string, node: string, given: Partial<ClusterMember> & { place?: string; url?: string } = {}): Promise<Node> {
  const { place = `machine-${node}:/data`, url = server.url, ...more } = given
  const cluster: ClusterMember = { name: 'test', node, roles: CLUSTER_ROLES, version: '1.0.0', ...more, url: null }
  const log = testHost().log
  const store = await openPostgresStore({ url, schema, node: place, cluster, readers: 1, writers: 2, log })
  undo.push(() => store.close())
  const ownership = new ShardOwnership({ store, clock: systemClock, log })
  await ownership.start()
  undo.push(() => ownership.stop())
  return { store, ownership, held: () => ownership.leases().held }
}

const shares = (nodes: readonly Node[]) => nodes.map(({ held }) => held())
const total = (nodes: readonly Node[]) => shares(nodes).reduce((sum, count) => sum + count, 0)
const owners = (nodes: readonly Node[], shard: number) => nodes.filter(({ ownership }) => ownership.of(shard)).length

test('nodes share all shards, and none has more than its share', async () => {
  const schema = `cluster_${schemas++}`
  const first = await start(schema, 'a')
  expect([first.held(), first.ownership.ownsAll]).toEqual([SHARDS, false])
  const second = await start(schema, 'b')
  await expect.poll(() => shares([first, second])).toEqual([128, 128])
  const third = await start(schema, 'c')
  const nodes = [first, second, third]
  await expect.poll(() => [total(nodes), Math.max(...shares(nodes)) <= 86]).toEqual([SHARDS, true])
  for (let shard = 0; shard < SHARDS; shard++) expect(owners(nodes, shard)).toBe(1)
  const listed = await first.store.cluster?.nodes()
  expect(listed?.map(({ node, state, shards }) => ({ node, state, shards }))).toEqual(
    nodes.map(({ held }, at) => ({ node: 'abc'[at], state: 'up', shards: held() })),
  )
})

test('each node sees the last report of each, and none of a node that has not reported', async () => {
  const schema = `cluster_${schemas++}`
  const [a, b] = [await start(schema, 'a'), await start(schema, 'b')]
  const report = (digest: string) => ({
    folders: [
      { name: 'skills', path: '/data/skills', mark: null, seen: { b: { id: 'x', count: 3 } }, digest, isUsable: true, problem: null },
    ],
    programs: [{ server: 'notes', processes: 2 }],
  })
  for (const digest of ['first', 'second']) await a.store.cluster?.report(report(digest))
  expect((await b.store.cluster?.nodes())?.map(({ node, report: found }) => [node, found])).toEqual([
    ['a', report('second')],
    ['b', null],
  ])
  const other = new pg.Client(server.url)
  await other.connect()
  undo.push(() => other.end())
  await other.query(`UPDATE ${schema}.processes SET report_json = '{"folders":1}'`)
  expect((await b.store.cluster?.nodes())?.map(({ report: found }) => found)).toEqual([null, null])
})

test('each node sees how wrong the clock of each is, and no shards at a dead one', async () => {
  const schema = `cluster_${schemas++}`
  const right = await start(schema, 'right')
  // The sum makes a zero of a clock that is a little behind, which is rounded to -0.
  const offsets = async () =>
    new Map((await right.store.cluster?.nodes())?.map(({ node, clockOffsetMs }) => [node, Math.round((clockOffsetMs ?? 1e9) / 10_000) + 0]))
  await expect.poll(offsets, { timeout: 5_000 }).toEqual(new Map([['right', 0]]))
  await right.ownership.stop()
  await right.store.close()

  const trueNow = Date.now
  const wrong = vi.spyOn(Date, 'now').mockImplementation(() => trueNow() - 3_600_000)
  undo.push(async () => wrong.mockRestore())
  const behind = await start(schema, 'behind')
  const listed = async () => (await behind.store.cluster?.nodes())?.find(({ node }) => node === 'behind')
  await expect.poll(async () => Math.round(((await listed())?.clockOffsetMs ?? 0) / 10_000), { timeout: 5_000 }).toBe(-360)
  expect(behind.store.cluster?.seen().clockOffsetMs).toBeCloseTo(-3_600_000, -4)

  const db = new pg.Client(server.url)
  await db.connect()
  undo.push(() => db.end())
  const dead = `INSERT INTO ${schema}.processes (id, node, schema_version, place, cluster, version, url, roles, beat_at)
    SELECT 'gone', 'gone', schema_version, 'other', cluster, version, url, roles, clock_timestamp() - interval '10 seconds'
    FROM ${schema}.processes WHERE node = 'behind' LIMIT 1`
  await db.query(dead)
  await db.query(
    `INSERT INTO ${schema}.leases (name, epoch, process, shard_from, shard_to) VALUES ('shards/300-301', 999999, 'gone', 300, 301)`,
  )
  const gone = (await behind.store.cluster?.nodes())?.find(({ node }) => node === 'gone')
  expect(gone).toMatchObject({ state: 'dead', shards: 0, leases: [], clockOffsetMs: null })
})

test('a rebalance makes every node compare its shards at once, and moves none that are where they belong', async () => {
  const schema = `cluster_${schemas++}`
  const nodes = [await start(schema, 'a'), await start(schema, 'b')] as const
  await expect.poll(() => shares(nodes)).toEqual([128, 128])
  const before = nodes.map(({ ownership }) => Array.from({ length: SHARDS }, (_, shard) => ownership.of(shard) !== undefined))
  // Without a notice, a node compares after half a second.
  const waits: number[] = []
  for (let round = 0; round < 3; round++) {
    const startedMs = performance.now()
    const compared = Promise.all(nodes.map(({ store }) => store.cluster?.changed(new AbortController().signal)))
    await nodes[round % 2]?.store.cluster?.rebalance()
    await compared
    waits.push(performance.now() - startedMs)
  }
  expect(Math.min(...waits)).toBeLessThan(400)
  expect(nodes.map(({ ownership }) => Array.from({ length: SHARDS }, (_, shard) => ownership.of(shard) !== undefined))).toEqual(before)
})

test('a node that stops gives idle shards away within a second, and keeps those in which something runs until it has ended', async () => {
  const schema = `cluster_${schemas++}`
  const first = await start(schema, 'a')
  const running = Promise.withResolvers<void>()
  await first.ownership.onShards(
    async () => {},
    async ({ lease }) => {
      if (lease.shards?.from === 200) await running.promise
    },
  )
  const second = await start(schema, 'b')
  await expect.poll(second.held).toBe(127)
  const startedMs = performance.now()
  const handedOver = first.ownership.handOver()
  await expect.poll(second.held, { interval: 10 }).toBe(SHARDS - 1)
  expect(performance.now() - startedMs).toBeLessThan(1_000)
  expect([first.held(), owners([first, second], 200)]).toEqual([1, 0])
  running.resolve()
  await handedOver
  await expect.poll(second.held).toBe(SHARDS)
})

test('shards of a node that is cut off are taken over after its leases have expired, and it writes nothing more under them', async () => {
  const schema = `cluster_${schemas++}`
  const proxy = await startProxy(server.port)
  undo.push(() => proxy.close())
  const url = new URL(server.url)
  url.port = String(proxy.port)
  const first = await start(schema, 'a', { url: url.href })
  const owned = first.ownership.of(7)
  await owned?.keyValue('test').set('x', 1)
  const second = await start(schema, 'b')
  await expect.poll(second.held).toBe(128)
  const kept = first.ownership.held().map(({ lease }) => lease.shards?.from ?? -1)
  proxy.refuse()
  const startedMs = performance.now()
  await expect.poll(second.held, { interval: 50 }).toBe(SHARDS)
  expect(performance.now() - startedMs).toBeLessThan(TTL_MS + 1_500)
  const shard = kept[0] ?? -1
  const before = first.ownership.of(shard)
  expect(before?.lease.mayAct()).toBe(false)
  proxy.accept()
  const refused = async (): Promise<boolean> =>
    isLeaseLost(
      await before
        ?.keyValue('test')
        .set('x', 2)
        .catch((error: unknown) => error),
    )
  await expect.poll(refused).toBe(true)
  expect(await second.store.keyValue('test').get('x')).toBe(1)
  await expect.poll(() => shares([first, second])).toEqual([128, 128])
})

test('a node that was cut off never acts under a lease that another node has taken over meanwhile', { timeout: 40_000 }, async () => {
  const schema = `cluster_${schemas++}`
  const proxy = await startProxy(server.port)
  undo.push(() => proxy.close())
  const url = new URL(server.url)
  url.port = String(proxy.port)
  const [first, second] = [await start(schema, 'a', { url: url.href }), await start(schema, 'b')]
  const lease = await first.store.leases.acquire('leader/cron')
  expect(lease.mayAct()).toBe(true)
  proxy.refuse()
  await second.store.leases.acquire('leader/cron')
  expect(lease.mayAct()).toBe(false)
  let actedMs: number | undefined
  const sampling = new AbortController()
  const sample = (): void => {
    if (lease.mayAct()) actedMs ??= performance.now()
    if (!sampling.signal.aborted) setImmediate(sample)
  }
  sample()
  proxy.accept()
  await expect.poll(() => lease.lost.aborted, { timeout: 10_000 }).toBe(true)
  sampling.abort()
  expect(actedMs).toBeUndefined()
})

test.each(['its signal aborts', 'the store is closed'] as const)(
  'a wait for a lease ends when %s while the lease turns out to be held by another node',
  { timeout: 20_000 },
  async (end) => {
    const schema = `cluster_${schemas++}`
    const [first, second] = [await start(schema, 'a'), await start(schema, 'b')]
    const held = await first.store.leases.acquire('leader/cron')
    const other = new pg.Client({ connectionString: server.url })
    await other.connect()
    undo.push(() => other.end())
    // A process that takes a lease waits for this lock.
    await other.query(`SET search_path = ${schema}; BEGIN; SELECT pg_advisory_xact_lock(7355, hashtext(current_schema()))`)
    const stopping = new AbortController()
    const outcome = second.store.leases.acquire('leader/cron', stopping.signal).catch((error: unknown) => error)
    const waits = async () => (await other.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")).rowCount
    await expect.poll(waits).toBe(1)
    const closed = end === 'its signal aborts' ? stopping.abort('stop') : second.store.close()
    await other.query('COMMIT')
    await closed
    const late = new Promise((resolve) => setTimeout(resolve, 2_000, 'still waits'))
    expect(await Promise.race([outcome, late])).toEqual(
      end === 'its signal aborts' ? 'stop' : expect.objectContaining({ code: 'unavailable' }),
    )
    await held.release()
  },
)

test('a node without the role worker owns no shards, and a drained one gives them up until it is undrained', async () => {
  const schema = `cluster_${schemas++}`
  const first = await start(schema, 'a')
  const ingress = await start(schema, 'i', { roles: ['ingress'] })
  const second = await start(schema, 'b')
  const nodes = [first, ingress, second]
  await expect.poll(() => shares(nodes)).toEqual([128, 0, 128])
  expect(await ingress.store.cluster?.drain('b', true)).toBe(true)
  await expect.poll(() => shares(nodes)).toEqual([SHARDS, 0, 0])
  expect((await first.store.cluster?.nodes())?.map(({ state }) => state)).toEqual(['up', 'drained', 'up'])
  expect(await ingress.store.cluster?.drain('b', false)).toBe(true)
  await expect.poll(() => shares(nodes)).toEqual([128, 0, 128])
  expect(await ingress.store.cluster?.drain('x', true)).toBe(false)
})

test('shards whose release did not reach the database pass on once it does', async () => {
  const schema = `cluster_${schemas++}`
  const proxy = await startProxy(server.port)
  undo.push(() => proxy.close())
  const url = new URL(server.url)
  url.port = String(proxy.port)
  const first = await start(schema, 'a', { url: url.href })
  proxy.refuse()
  await expect(
    Promise.all(
      first.ownership
        .held()
        .slice(0, 128)
        .map(({ lease }) => lease.release()),
    ),
  ).rejects.toMatchObject({ code: 'unavailable' })
  proxy.accept()
  const second = await start(schema, 'b')
  await expect.poll(() => shares([first, second])).toEqual([128, 128])
})

test('a restarted node takes its shards at once, and a second node of its name does not start', async () => {
  const schema = `cluster_${schemas++}`
  await start(schema, 'a')
  const again = await start(schema, 'a')
  expect(again.held()).toBe(SHARDS)
  await expect(start(schema, 'a', { place: 'machine-2:/data' })).rejects.toMatchObject({ code: 'config_invalid' })
  await expect(start(schema, 'b', { name: 'other' })).rejects.toMatchObject({ code: 'config_invalid' })
})

test('work of a leader runs on one node, and on another as soon as that one hands over', async () => {
  const schema = `cluster_${schemas++}`
  const nodes = [await start(schema, 'a'), await start(schema, 'b')]
  const leading: string[] = []
  const stop = new AbortController()
  for (const [at, { ownership }] of nodes.entries()) {
    const work = async (_: unknown, signal: AbortSignal): Promise<void> => {
      leading.push(`${at}`)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    }
    void ownership.whileHolding('leader/cron', work, stop.signal)
  }
  await expect.poll(() => leading.length).toBe(1)
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(leading).toHaveLength(1)
  const startedMs = performance.now()
  await nodes[Number(leading[0])]?.ownership.handOver()
  await expect.poll(() => leading.length, { interval: 10 }).toBe(2)
  expect(performance.now() - startedMs).toBeLessThan(1_000)
  expect(new Set(leading).size).toBe(2)
  stop.abort()
})

test('a message that is committed after one with a higher number is listed as waiting', async () => {
  const schema = `cluster_${schemas++}`
  const { store, ownership } = await start(schema, 'a')
  const session = 'channel:roomchat/bot/ann'
  const keep = (id: string) => {
    const message = { id, account: 'bot', sender: 'ann', to: { to: 'room' }, text: 'hello' }
    return store.inbox.keep({ channel: 'roomchat', verdict: 'v', raw: null, receivedAtMs: 1, messages: [{ message, session }] })
  }
  const owned = ownership.of(shardOfSession(session)) ?? expect.fail('the only node owns all shards')
  const waiting = async () => (await owned.inbox.waiting({ after: 0, limit: 10 })).map(({ number }) => number)
  const [one] = await keep('one')
  const client = new pg.Client({ connectionString: server.url, options: `-c search_path=${schema}` })
  await client.connect()
  undo.push(() => client.end())
  const columns = 'shard, channel, account, sender, session, received_at, verdict, kind'
  await client.query('BEGIN')
  const inserted = await client.query(`INSERT INTO inbox (key, message_id, message_json, ${columns})
    SELECT 'two', 'two', message_json, ${columns} FROM inbox WHERE message_id = 'one' RETURNING number`)
  const two = Number(inserted.rows[0].number)
  const [three] = await keep('three')
  expect(Number(three)).toBeGreaterThan(two)
  expect(await waiting()).toEqual([one, three])
  await client.query('COMMIT')
  expect(await waiting()).toEqual([one, two, three])
})

test('the first node creates the key for secrets, and a node without it is refused before it owns anything', async () => {
  const schema = `cluster_${schemas++}`
  const created: string[] = []
  const open = async (node: string, keyIds: readonly string[] = []) => {
    const cluster: ClusterMember = { name: 'test', node, roles: CLUSTER_ROLES, version: '1.0.0', url: null }
    const keyId = () => {
      if (keyIds[0] === undefined && !created.includes(node)) created.push(node)
      return keyIds[0] ?? `key-of-${node}`
    }
    const signer = { keyId, sign: () => '', faultOf: () => undefined, remembered: () => undefined, remember: () => undefined }
    const keyIdNow = () => [...keyIds, ...(created.includes(node) ? [`key-of-${node}`] : [])][0]
    const store = await openPostgresStore({ url: server.url, schema, node, cluster, keyIds, signer, keyIdNow, readers: 1, writers: 1 })
    undo.push(() => store.close())
    return store
  }
  const [opened, refused] = await Promise.allSettled([open('a'), open('b')]).then((all) =>
    all.toSorted((a, b) => (a.status < b.status ? -1 : 1)),
  )
  if (opened?.status !== 'fulfilled' || refused?.status !== 'rejected') throw new Error('one of two nodes without a key opens the store')
  const [first] = [opened.value]
  await first.cluster?.claimShards()
  const owner = created[0]
  expect(created).toHaveLength(1)
  expect(refused.reason).toMatchObject({ code: 'config_invalid', message: expect.stringContaining(`key-of-${owner}`) })
  await expect(open('c')).rejects.toMatchObject({ code: 'config_invalid' })
  expect(created).toHaveLength(1)
  await (await open('d', [`key-of-${owner}`])).cluster?.claimShards()
  expect((await first.cluster?.nodes())?.map(({ node, keyId }) => `${node} ${keyId}`)).toEqual([
    `${owner} key-of-${owner}`,
    `d key-of-${owner}`,
  ])
})

test('a process that has written and not yet given a sign of life goes on writing while another one starts', async () => {
  const schema = `cluster_${schemas++}`
  const early = await openPostgresStore({ url: server.url, schema, node: 'early', readers: 1, writers: 1 })
  undo.push(() => early.close())
  await early.keyValue('owner').set('key', 1)
  const { store } = await start(schema, 'a')
  // What a start removes is removed before this write is done.
  await store.keyValue('owner').set('other', 1)
  await early.keyValue('owner').set('key', 2)
  expect(await early.keyValue('owner').get('key')).toBe(2)
  expect((await store.cluster?.nodes())?.map(({ node, state }) => `${node} ${state}`)).toEqual(['a up'])
})
