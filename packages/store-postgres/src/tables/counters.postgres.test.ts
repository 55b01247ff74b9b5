/** Limits of several nodes on one schema. */
import { testClock } from '@sluice/testkit/clock'
import { counterRules } from '@sluice/testkit/store-rules/counters'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openNode, type TestNode } from '../testing/nodes.ts'
import { startPostgres, type TestServer } from '../testing/postgres-server.ts'

let server: TestServer
let schemas = 0
const open: TestNode[] = []
beforeAll(async () => {
  server = await startPostgres({ inMemory: true })
})
afterEach(async () => {
  for (const node of open.splice(0)) await node.store.close()
})
afterAll(() => server.stop())

async function nodes(count: number, clock = testClock()): Promise<readonly TestNode[]> {
  const schema = `counters_${schemas++}`
  for (let at = 0; at < count; at++) open.push(await openNode(server.url, schema, clock))
  return open
}

describe('the rules of counters', () => {
  test.each(Object.entries(counterRules))('%s', async (_rule, hold) => {
    const clock = testClock()
    const [node] = await nodes(1, clock)
    if (!node) throw new Error('there is a node')
    const store = node.store
    await hold({ store, clock, otherProcess: async () => store, restart: async () => store })
  })
})

test('nodes share a rate limit, of which each lets a part pass on its own', async () => {
  const clock = testClock()
  const limits = (await nodes(3, clock)).map(({ store }) => store.counters.rateLimit('webhook', { limit: 60, keysMax: 10 }))
  const passed = [0, 0, 0]
  for (let call = 0; call < 300; call++) if ((await limits[call % 3]?.take('a')) === 0) passed[call % 3] = (passed[call % 3] ?? 0) + 1
  const sum = passed.reduce((a, b) => a + b)
  expect(sum).toBeGreaterThanOrEqual(60)
  // One half of the limit is free, once.
  expect(sum).toBeLessThanOrEqual(90)
  await clock.advance(60_000)
  for (const limit of limits) expect(await limit?.take('a')).toBe(0)
})

test('a node that has all the calls lets as many pass as the limit says', async () => {
  const [first] = await nodes(3)
  const limit = first?.store.counters.rateLimit('webhook', { limit: 200, keysMax: 10 })
  let passed = 0
  for (let call = 0; call < 300; call++) if ((await limit?.take('a')) === 0) passed++
  expect(passed).toBe(200)
})

test('calls that every node counts at the same time are counted once each', async () => {
  const limits = (await nodes(3)).map(({ store }) => store.counters.rateLimit('webhook', { limit: 1, keysMax: 10 }))
  const taken = await Promise.all(Array.from({ length: 30 }, async (_, at) => limits[at % 3]?.take('a')))
  expect(taken.filter((secs) => secs === 0)).toHaveLength(1)
})

test('a failure on one node counts on each, and all lock out together', async () => {
  const lockouts = (await nodes(3)).map(({ store }) =>
    store.counters.lockout('codes', { failuresMax: 5, windowMs: 60_000, lockMs: 300_000, keysMax: 10 }),
  )
  const tooMany = []
  for (let failure = 0; failure < 5; failure++) tooMany.push(await lockouts[failure % 3]?.fail('a'))
  expect(tooMany).toEqual([false, false, false, false, true])
  for (const lockout of lockouts) expect(await lockout.leftSecs('a')).toBe(300)
})

test('failures at the same time on every node are counted once each', async () => {
  const lockouts = (await nodes(3)).map(({ store }) =>
    store.counters.lockout('codes', { failuresMax: 10, windowMs: 60_000, lockMs: 0, keysMax: 10 }),
  )
  const tooMany = await Promise.all(Array.from({ length: 30 }, (_, at) => lockouts[at % 3]?.fail('a')))
  expect(tooMany.filter(Boolean)).toHaveLength(3)
})

test('rows of counters are bounded by the number of keys', async () => {
  const clock = testClock()
  const [node] = await nodes(1, clock)
  const lockout = node?.store.counters.lockout('codes', { failuresMax: 5, windowMs: 60_000, lockMs: 0, keysMax: 3 })
  for (let key = 0; key < 20; key++) await lockout?.fail(`key ${key}`)
  await clock.advance(60_000)
  for (let key = 0; key < 5; key++) await lockout?.fail(`later ${key}`)
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const count = async () => (await client.query(`SELECT count(*)::int AS count FROM counters_${schemas - 1}.lockouts`)).rows[0]?.count
  await expect.poll(count).toBeLessThanOrEqual(5)
  await client.end()
})

test('a one-time key is taken once, on any node, and only by its owner', async () => {
  const clock = testClock()
  const [first, second] = await nodes(2, clock)
  const keys = [first, second].map((node) =>
    node?.cluster.oneTimeKeys<{ role: string }>('links', { ttlMs: 60_000, perOwnerMax: 2, allMax: 4 }),
  )
  const [here, there] = keys
  await here?.add('ann', 'k1', { role: 'operator' })
  expect(await there?.take('bob', 'k1')).toBeUndefined()
  const taken = await Promise.all(Array.from({ length: 10 }, (_, at) => keys[at % 2]?.take('ann', 'k1')))
  expect(taken.filter(Boolean)).toEqual([{ role: 'operator' }])
  await here?.add('ann', 'k2', { role: 'client' })
  await clock.advance(60_000)
  expect(await there?.take('ann', 'k2')).toBeUndefined()
})

test('one-time keys of an owner, and all of them, are bounded', async () => {
  const [first] = await nodes(1)
  const keys = first?.cluster.oneTimeKeys<number>('links', { ttlMs: 60_000, perOwnerMax: 2, allMax: 3 })
  for (let key = 1; key <= 3; key++) await keys?.add('ann', `k${key}`, key)
  expect([await keys?.take('ann', 'k1'), await keys?.take('ann', 'k2')]).toEqual([undefined, 2])
  for (let key = 4; key <= 6; key++) await keys?.add(`owner ${key}`, 'k', key)
  expect([await keys?.take('ann', 'k3'), await keys?.take('owner 4', 'k')]).toEqual([undefined, 4])
})
