/** The set-up of the cluster's tests, with one daemon. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { startCluster, type TestCluster } from './test-cluster.ts'

const TOML = `[gateway]
require_pairing = false
[provider]
kind = "offline"
`

let cluster: TestCluster
afterEach(() => cluster.close())

const ask = async (message: string): Promise<number> => {
  const response = await fetch(`${cluster.front.url}/webhook`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message }),
  })
  await response.arrayBuffer()
  return response.status
}

test('a daemon on PostgreSQL answers through the front, not without the database, and again after it', async () => {
  cluster = await startCluster({ nodes: 1, isCluster: false, toml: TOML })
  const [node] = cluster.nodes
  expect(await ask('hello')).toBe(200)
  await node.database.cut('reset')
  expect(await ask('is anybody there')).toBe(503)
  await node.database.restore()
  const endMs = performance.now() + 10_000
  while ((await ask('and now')) !== 200 && performance.now() < endMs) await sleep(100)
  expect(await ask('again')).toBe(200)

  await node.end('SIGKILL')
  await expect(ask('nobody')).rejects.toThrow()
  await node.start()
  expect(await ask('back')).toBe(200)
  expect(await node.end('SIGTERM')).toBe(0)
})
