/** Limits of clients and of the pool of strangers, of several nodes on one schema. */
import { Link } from '@sluice/testkit/link'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openNode, type TestNode } from '../testing/nodes.ts'
import { startPostgres, type TestServer } from '../testing/postgres-server.ts'

const AT_MS = 20_000 * 86_400_000
const SLOW_MS = 50
let server: TestServer
let schemas = 0
const open: TestNode[] = []
const links: Link[] = []
beforeAll(async () => {
  server = await startPostgres({ inMemory: true })
})
afterEach(async () => {
  for (const link of links) link.delayMs = 0
  for (const node of open.splice(0)) await node.store.close()
  for (const link of links.splice(0)) await link.close()
})
afterAll(() => server.stop())

/** Two nodes, each with a link of its own to the database. */
async function twoNodes(): Promise<readonly [TestNode, TestNode]> {
  const schema = `admissions_${schemas++}`
  const create = async (): Promise<TestNode> => {
    const link = new Link()
    links.push(link)
    const node = await openNode(server.url.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${await link.portTo(server.port)}`), schema)
    open.push(node)
    return node
  }
  return [await create(), await create()]
}

const limit = (key: string, turnsPerHour: number, usdPerDay = 0) => ({ key, turnsPerHour, turnsInFlight: 0, usdPerDay })
const take = ({ store }: TestNode, id: string, counted: readonly ReturnType<typeof limit>[]) =>
  store.admissions.take({ id, counted, shard: 7, atMs: AT_MS })

test('messages of strangers wait for no round trips of other nodes', async () => {
  const nodes = await twoNodes()
  for (const link of links) link.delayMs = SLOW_MS
  const startedMs = performance.now()
  const taken = await Promise.all(
    Array.from({ length: 100 }, (_, at) =>
      take(at % 2 === 0 ? nodes[0] : nodes[1], `inbox:${at}`, [limit(`person-${at}`, 0, 1), limit('strangers', 0, 1)]),
    ),
  )
  expect(taken).toEqual(Array.from({ length: 100 }, () => undefined))
  // One after the other, they would wait for more than 30 s.
  expect(performance.now() - startedMs).toBeLessThan(5_000)
})

test('nodes that ask at the same time admit exactly as many turns as a limit says', async () => {
  const nodes = await twoNodes()
  const ask = (round: number) =>
    Promise.all(
      Array.from({ length: 60 }, (_, at) =>
        // Both nodes ask for each message, as after a takeover, and name the clients in different orders.
        take(at % 2 === 0 ? nodes[0] : nodes[1], `inbox:${round}-${Math.floor(at / 2)}`, [
          limit(`person-${at % 2 === 0 ? at : 60 - at}`, 0, 1),
          limit('strangers', 20),
        ]),
      ),
    )
  const taken = [...(await ask(1)), ...(await ask(2))]
  const refused = taken.filter((exceeded) => exceeded !== undefined)
  expect(new Set(refused.map(({ key, limit: name }) => `${name} ${key}`))).toEqual(new Set(['turns_per_hour strangers']))
  expect(refused[0]?.freeAtMs).toBe(AT_MS + 3_600_000)
  // The limit admits twenty messages, and both nodes get that answer.
  expect(taken.length - refused.length).toBe(40)
})

test('an admission that is taken back leaves no gap, whatever else is taken back with it', async () => {
  const [one, other] = await twoNodes()
  const three = [limit('ann', 3)]
  for (const id of ['a', 'b', 'c']) expect(await take(one, id, three)).toBeUndefined()
  await Promise.all([one.store.admissions.cancel('a'), one.store.admissions.cancel('b'), other.store.admissions.cancel('unknown')])
  for (const id of ['d', 'e']) expect(await take(other, id, three)).toBeUndefined()
  expect(await take(one, 'f', three)).toMatchObject({ limit: 'turns_per_hour', key: 'ann' })
})

test('a client that two nodes hold back at the same time is news once, and no node waits for round trips of the other', async () => {
  const nodes = await twoNodes()
  for (const link of links) link.delayMs = SLOW_MS
  const startedMs = performance.now()
  const hold = (at: number) => {
    const client = at % 4 < 2 ? 'strangers' : 'ann'
    const held = { client, cause: 'turns_per_hour', sinceMs: AT_MS, untilMs: AT_MS + 3_600_000 } as const
    return (at % 2 === 0 ? nodes[0] : nodes[1]).store.admissions.hold(held, 3_600_000).then((isNews) => ({ client, isNews }))
  }
  const held = await Promise.all(Array.from({ length: 80 }, (_, at) => hold(at)))
  expect(held.filter(({ isNews }) => isNews).map(({ client }) => client)).toHaveLength(2)
  expect(performance.now() - startedMs).toBeLessThan(5_000)
  expect(await nodes[0].store.admissions.list(AT_MS + 100, 9)).toHaveLength(2)
})
