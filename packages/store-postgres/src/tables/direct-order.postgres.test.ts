/** Turns that clients wait for, on two nodes: the order within a session, and one turn for each idempotency key. */
import { testClock } from '@sluice/testkit/clock'
import { queuedTurn, turnEnd } from '@sluice/testkit/store-rules/samples'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openNode, type TestNode } from '../testing/nodes.ts'
import { startPostgres, type TestServer } from '../testing/postgres-server.ts'

const QUICK_MS = 300

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

async function twoNodes(clock = testClock()): Promise<readonly [TestNode, TestNode]> {
  const schema = `order_${schemas++}`
  const [one, two] = [await openNode(server.url, schema, clock), await openNode(server.url, schema, clock)]
  open.push(one, two)
  return [one, two]
}

test('a turn waits for one of its session that another live node has stored before and not begun', async () => {
  const [one, two] = await twoNodes()
  const session = 'local/ada'
  const turn = (id: string) => ({ ...queuedTurn(id), sessionId: session, isDirect: true })
  const begin = ({ cluster }: TestNode, id: string) =>
    cluster.turns.begin({ id, session, owner: undefined }, { signal: AbortSignal.timeout(10_000), onWait: () => {} })
  await one.store.turns.enqueue(turn('first'))
  await two.store.turns.enqueue(turn('second'))
  let hasBegun = false
  const second = begin(two, 'second').then((lease) => {
    hasBegun = true
    return lease
  })
  await new Promise((resolve) => setTimeout(resolve, QUICK_MS))
  expect(hasBegun).toBe(false)
  const first = await begin(one, 'first')
  await one.store.under(first).turns.start('first')
  await one.store.under(first).turns.finish(turnEnd('first', { sessionId: session }))
  await first.release()
  await (await second).release()
})

test('a key whose turn has ended on another node since it was claimed runs no second turn', async () => {
  const clock = testClock()
  const [one, two] = await twoNodes(clock)
  const [key, limits] = [
    { scope: 'open /webhook', key: 'k1' },
    { ttlMs: 300_000, keysMax: 100 },
  ]
  const turn = (id: string) => ({ ...queuedTurn(id), createdAtMs: clock.nowMs(), idempotency: key })
  expect([await one.store.idempotency.claim(key, limits), await two.store.idempotency.claim(key, limits)]).toEqual(['claimed', 'claimed'])
  await one.store.turns.enqueue(turn('first'))
  await one.store.turns.finish(turnEnd('first', { endedAtMs: clock.nowMs(), idempotency: key }))
  await clock.advance(10)
  await expect(two.store.turns.enqueue(turn('second'))).rejects.toMatchObject({ code: 'conflict' })
})
