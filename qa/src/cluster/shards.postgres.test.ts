/** Two daemons that share the shards of one database, through stops, kills and suspensions of one of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { testing } from '@sluice/channel-textrelay/testing'
import type { CrashKind } from '@sluice/testkit/crash-kind'
import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { type Asked, type Model, type ModelAnswer, startModel } from '../chaos/model.ts'
import { sectionToml } from '../daemons/section-toml.ts'
import type { ClusterNode } from './cluster-node.ts'
import { startCluster, type TestCluster } from './test-cluster.ts'

const TTL_MS = 6_000
const undo: (() => Promise<unknown>)[] = []
afterEach(async () => {
  while (undo.length > 0) await undo.pop()?.()
})

interface Arranged {
  readonly cluster: TestCluster
  readonly kind: CrashKind
  readonly first: ClusterNode
  readonly second: ClusterNode
  /** Posts a message to a node. Resolves to the status of its answer. */
  readonly post: (node: ClusterNode, sender: number, text: string) => Promise<number>
  readonly database: pg.Client
}

interface Arrangement {
  readonly answer?: (asked: Asked) => Promise<ModelAnswer>
  readonly clusterKeys?: (node: string) => string
}

const echo = async ({ text }: Asked): Promise<ModelAnswer> => ({ text: `re: ${text}` })

async function arrange({ answer = echo, clusterKeys }: Arrangement = {}): Promise<Arranged> {
  const kind = await testing.crashKind?.()
  if (!kind) throw new Error('the channel has no crash kind')
  undo.push(async () => kind.fake.close())
  const model: Model = await startModel(answer)
  undo.push(() => model.close())
  const toml = `[gateway]
port = 0
require_pairing = false
webhook_rate_limit_per_minute = 0
[provider]
kind = "openai"
base_url = "${model.url}"
model = "chaos"
[limits]
loop_turns = 0
[limits.strangers]
turns_per_hour = 0
turns_in_flight = 0
pool = { turns_per_hour = 0, turns_in_flight = 0 }
${sectionToml('textrelay', kind.section)}`
  const cluster = await startCluster({ toml, ...(clusterKeys && { clusterKeys }) })
  undo.push(() => cluster.close())
  const [first, second] = cluster.nodes
  if (!second) throw new Error('two nodes are needed')
  const database = new pg.Client({ connectionString: cluster.server.url })
  database.on('error', () => undefined)
  await database.connect()
  undo.push(() => database.end())
  await database.query('SET search_path = sluice')
  let messages = 0
  const post = async (node: ClusterNode, sender: number, text: string): Promise<number> => {
    const id = `m${++messages}`
    const mark = { mark: id, sender: kind.senders[sender] ?? '', text, id }
    const request = kind.request?.([mark])
    if (!request) throw new Error('the channel has no webhook')
    const { status } = await fetch(`${node.url}${request.path}`, { method: 'POST', headers: request.headers, body: request.body })
    return status
  }
  return { cluster, kind, first, second, post, database }
}

const healthOf = async ({ url }: ClusterNode) =>
  (await fetch(`${url}/health`)).json() as Promise<{ node: string; leases: { held: number } }>
const heldBy = async (node: ClusterNode): Promise<number> => (await healthOf(node)).leases.held

const evenly = (nodes: readonly ClusterNode[]) =>
  expect.poll(async () => Promise.all(nodes.map(heldBy)), { timeout: 20_000, interval: 50 }).toEqual(nodes.map(() => 256 / nodes.length))

/** The replies in their order. */
const replies = ({ kind }: Arranged): readonly string[] => kind.delivered()

test('each node runs the messages of its shards, wherever they arrive, in their order, and answers each once', async () => {
  const arranged = await arrange()
  const { first, second, post } = arranged
  await evenly([first, second])
  expect((await healthOf(second)).node).toBe('node-2')
  const texts = Array.from({ length: 40 }, (_, at) => ({ sender: at % 4, text: `number ${at}` }))
  // Each sender writes the next message once the one before was acknowledged, by another node each time.
  await Promise.all(
    [0, 1, 2, 3].map(async (sender) => {
      const own = texts.filter((one) => one.sender === sender)
      for (const [at, { text }] of own.entries()) expect(await post(at % 2 ? first : second, sender, text)).toBe(200)
    }),
  )
  await expect.poll(() => replies(arranged).length, { timeout: 20_000 }).toBe(texts.length)
  for (const sender of [0, 1, 2, 3]) {
    const own = texts.filter((one) => one.sender === sender).map(({ text }) => text)
    const order = replies(arranged).flatMap((reply) => own.filter((text) => reply.endsWith(text)))
    expect(order).toEqual(own)
  }
})

test('a stopping node passes idle shards on at once, and the shard of a running turn after it', async () => {
  const release = Promise.withResolvers<void>()
  const asked: string[] = []
  const answer = async ({ text }: Asked): Promise<ModelAnswer> => {
    asked.push(text)
    if (text.includes('slow')) await release.promise
    return { text: `re: ${text}` }
  }
  const arranged = await arrange({ answer })
  const { first, second, post, database } = arranged
  await evenly([first, second])
  await post(first, 0, 'slow')
  await expect.poll(() => asked.length).toBe(1)
  const { rows } = await database.query<{ node: string }>(
    'SELECT node FROM inbox JOIN leases ON shard BETWEEN shard_from AND shard_to JOIN processes ON processes.id = leases.process WHERE ended_at IS NULL',
  )
  const [owner, other] = rows[0]?.node === 'node-1' ? [first, second] : [second, first]
  const url = owner.url
  const startedMs = performance.now()
  const ended = owner.end('SIGTERM')
  await expect.poll(() => heldBy(other), { interval: 20 }).toBe(255)
  expect(performance.now() - startedMs).toBeLessThan(1_500)
  expect((await fetch(`${url}/ready`).catch(() => undefined))?.status ?? 503).toBe(503)
  release.resolve()
  expect(await ended).toBe(0)
  await expect.poll(() => heldBy(other), { interval: 20 }).toBe(256)
  await expect.poll(() => replies(arranged)).toEqual(['re: slow'])
})

test('another node takes over from a killed one within its time to live and a second, and answers what was acknowledged', async () => {
  const arranged = await arrange()
  const { first, second, post } = arranged
  await evenly([first, second])
  for (const sender of [0, 1, 2, 3]) await post(first, sender, `hello ${sender}`)
  await first.end('SIGKILL')
  const startedMs = performance.now()
  await expect.poll(() => heldBy(second), { interval: 50, timeout: 20_000 }).toBe(256)
  expect(performance.now() - startedMs).toBeLessThan(TTL_MS + 1_500)
  for (const sender of [0, 1, 2, 3])
    await expect.poll(() => replies(arranged).filter((text) => text.endsWith(`hello ${sender}`)).length).toBe(1)
  await first.start()
  await evenly([first, second])
})

test('a suspended node sends nothing after it goes on that its successor has sent, and takes its share again', async () => {
  const release = Promise.withResolvers<void>()
  let asked = 0
  const answer = async ({ text }: Asked): Promise<ModelAnswer> => {
    asked++
    if (asked === 1) await release.promise
    return { text: `re: ${text}` }
  }
  const arranged = await arrange({ answer })
  const { first, second, post, database } = arranged
  await evenly([first, second])
  await post(first, 1, 'hold')
  await expect.poll(() => asked).toBe(1)
  const { rows } = await database.query<{ node: string }>(
    'SELECT node FROM inbox JOIN leases ON shard BETWEEN shard_from AND shard_to JOIN processes ON processes.id = leases.process WHERE ended_at IS NULL',
  )
  const [owner, other] = rows[0]?.node === 'node-1' ? [first, second] : [second, first]
  owner.suspend()
  release.resolve()
  await expect.poll(() => replies(arranged), { timeout: 20_000 }).toEqual(['re: hold'])
  expect(await heldBy(other)).toBe(256)
  owner.resume()
  await evenly([first, second])
  await sleep(300)
  expect(replies(arranged)).toEqual(['re: hold'])
})

test('roles: only workers own shards, and a node without ingress answers webhooks 503', async () => {
  const arranged = await arrange({ clusterKeys: (node) => (node === 'node-1' ? 'roles = ["ingress"]' : 'roles = ["worker", "channels"]') })
  const { first, second, post } = arranged
  await expect.poll(() => Promise.all([heldBy(first), heldBy(second)]), { timeout: 20_000 }).toEqual([0, 256])
  expect([await post(first, 0, 'in'), await post(second, 0, 'refused')]).toEqual([200, 503])
  await expect.poll(() => replies(arranged)).toEqual(['re: in'])
})

test('without the database webhooks are answered 503, and everything goes on by itself', async () => {
  const arranged = await arrange()
  const { cluster, first, second, post } = arranged
  await evenly([first, second])
  expect(await post(first, 0, 'before')).toBe(200)
  await expect.poll(() => replies(arranged).length).toBe(1)
  await cluster.server.kill()
  expect(await post(first, 0, 'during')).toBe(503)
  expect(await post(second, 1, 'during')).toBe(503)
  await cluster.server.start()
  await expect.poll(() => post(first, 2, 'after'), { timeout: 20_000, interval: 200 }).toBe(200)
  await expect.poll(() => replies(arranged).filter((text) => text.endsWith('after')).length, { timeout: 20_000 }).toBeGreaterThan(0)
  await evenly([first, second])
})

test('an operator drains a node through any node, and undrains it', async () => {
  const { first, second } = await arrange()
  await evenly([first, second])
  const call = async (path: string, method = 'POST') => (await fetch(`${first.url}/api/cluster${path}`, { method })).json()
  expect(await call('', 'GET')).toMatchObject({
    name: 'test',
    node: 'node-1',
    unowned_shards: 0,
    nodes: [{ shards: 128 }, { shards: 128 }],
  })
  await call('/nodes/node-2/drain')
  await expect.poll(() => Promise.all([heldBy(first), heldBy(second)])).toEqual([256, 0])
  expect(await call('', 'GET')).toMatchObject({ nodes: [{ state: 'up' }, { state: 'drained', shards: 0, leases: [] }] })
  await call('/nodes/node-2/undrain')
  await evenly([first, second])
  expect(await call('/nodes/nobody/drain')).toMatchObject({ code: 'not_found' })
})
