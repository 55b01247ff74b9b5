/** Tokens, limits and events of two daemons that share a database, over HTTP, and without the database. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { scriptedModel } from '@sluice/agent/testing/scripted-model'
import { type Daemon, startDaemon } from '@sluice/daemon'
import { newToken } from '@sluice/runtime'
import { defineFeature } from '@sluice/sdk'
import { openSecretBox } from '@sluice/store/secret-box'
import storePostgres from '@sluice/store-postgres'
import { startPostgres, type TestServer } from '@sluice/store-postgres/testing/postgres-server'
import { Link } from '@sluice/testkit/link'
import { afterAll, beforeAll, expect, test } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'sluice-trust-'))
const features = [
  storePostgres,
  defineFeature({
    id: 'provider-offline',
    build: () => ({ providers: [{ kinds: ['offline'], load: async () => scriptedModel([{ text: 'hello' }]) }] }),
  }),
]
interface Node {
  readonly daemon: Daemon
  readonly link: Link
}
let server: TestServer
const nodes: Node[] = []

async function start(name: string): Promise<Node> {
  const dataDir = join(folder, name)
  mkdirSync(dataDir, { mode: 0o700 })
  copyFileSync(join(folder, 'secret.key'), join(dataDir, 'secret.key'))
  const link = new Link()
  const url = `postgres://postgres@127.0.0.1:${await link.portTo(server.port)}/postgres`
  const store = `[store]\nbackend = "postgres"\nurl = "${url}"\nconnect_timeout_secs = 2`
  const configFile = join(dataDir, 'config.toml')
  const rest = '[provider]\nkind = "offline"\nmodel = "m"\n[gateway]\nport = 0\n'
  writeFileSync(configFile, `${store}\n[cluster]\nname = "test"\nnode = "${name}"\n${rest}`, { mode: 0o600 })
  const daemon = await startDaemon({ features, dataDir, configFile, env: {}, version: '1.0.0', profile: 'test', quiet: true })
  const node = { daemon, link }
  nodes.push(node)
  return node
}

beforeAll(async () => {
  server = await startPostgres({ inMemory: true })
  openSecretBox(folder).encrypt('', '')
  await start('node-1')
  await start('node-2')
}, 60_000)
afterAll(async () => {
  for (const { link } of nodes) await link.restore()
  for (const { daemon } of nodes) await daemon.stop()
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

const pair = (): readonly [Node, Node] => {
  const [first, second] = nodes
  if (!first || !second) throw new Error('there are two nodes')
  return [first, second]
}

async function tokenAt({ daemon }: Node): Promise<{ readonly token: string; readonly device: string }> {
  const { store, clock } = daemon.runtime
  return newToken(store, { name: 'phone', role: 'operator', expiresAtMs: null }, clock)
}

const ask = ({ daemon }: Node, path: string, token: string, init: RequestInit = {}) =>
  fetch(`${daemon.url}${path}`, {
    ...init,
    headers: { Authorization: `Bearer ${token}`, ...init.headers },
    signal: AbortSignal.timeout(8_000),
  })

/** Follows events; `text` is what has arrived, and `ended` the time at which the stream ended. */
async function follow(node: Node, token: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${node.daemon.url}/api/events`, { headers: { Authorization: `Bearer ${token}`, ...headers } })
  const state = { text: '', endedMs: 0, status: response.status }
  void (async () => {
    for await (const piece of response.body ?? []) state.text += Buffer.from(piece).toString()
    state.endedMs = performance.now()
  })().catch(() => {
    state.endedMs = performance.now()
  })
  return state
}

test('a token that one node revokes ends its streams on the other within a second', async () => {
  const [first, second] = pair()
  const { token, device } = await tokenAt(first)
  const other = await tokenAt(first)
  const stream = await follow(second, token)
  const kept = await follow(second, other.token)
  const socket = new WebSocket(`${second.daemon.url.replace('http', 'ws')}/ws/events`, ['sluice.v1', `bearer.${token}`])
  const closed = new Promise<number>((resolve) => socket.addEventListener('close', ({ code }) => resolve(code)))
  await new Promise((resolve) => socket.addEventListener('open', resolve))
  const startedMs = performance.now()
  await ask(first, `/api/devices/${device}`, other.token, { method: 'DELETE' })
  expect(await closed).toBe(4401)
  await expect.poll(() => stream.endedMs, { timeout: 5_000 }).toBeGreaterThan(0)
  // The busy machine of a test may need longer than the half second between two looks.
  expect(stream.endedMs - startedMs).toBeLessThan(3_000)
  expect((await ask(second, '/api/status', token)).status).toBe(401)
  expect(kept.endedMs).toBe(0)
}, 30_000)

test('an event reaches subscribers of both nodes with one id, and a client resumes on the other node', async () => {
  const [first, second] = pair()
  const { token } = await tokenAt(first)
  const streams = [await follow(first, token), await follow(second, token)]
  const post = async (node: Node, n: number) => {
    const init = { method: 'POST', body: JSON.stringify({ type: 'note', n }), headers: { 'Content-Type': 'application/json' } }
    return ((await (await ask(node, '/api/channel-events', token, init)).json()) as { readonly event_id: string }).event_id
  }
  const ids = [await post(first, 1), await post(second, 2), await post(first, 3)]
  expect(ids.toSorted()).toEqual(ids)
  for (const { status } of streams) expect(status).toBe(200)
  for (const stream of streams) {
    await expect.poll(() => ids.every((id) => stream.text.includes(`id: ${id}\n`)), { timeout: 5_000 }).toBe(true)
  }
  const resumed = await follow(second, token, { 'Last-Event-ID': ids[0] ?? '' })
  await expect.poll(() => resumed.text.includes(`id: ${ids[2]}\n`), { timeout: 5_000 }).toBe(true)
  expect(resumed.text).toContain(`id: ${ids[1]}\n`)
  expect(resumed.text).not.toContain(`id: ${ids[0]}\n`)
  expect(resumed.text).not.toContain('event: gap')
}, 30_000)

test('a wrong pairing code counts on both nodes', async () => {
  const statuses: number[] = []
  for (let guess = 0; guess < 6; guess++) {
    const node = pair()[guess % 2 === 0 ? 0 : 1]
    const init = { method: 'POST', headers: { 'X-Pairing-Code': '000000' } }
    statuses.push((await fetch(`${node.daemon.url}/pair`, init)).status)
  }
  expect(statuses).toEqual([403, 403, 403, 403, 403, 429])
}, 30_000)

test.each(['reset', 'silent'] as const)(
  'without the database, requests are refused and streams end: %s',
  async (kind) => {
    const [first, second] = pair()
    const { token } = await tokenAt(first)
    const stream = await follow(second, token)
    expect((await ask(second, '/api/status', token)).status).toBe(200)
    await new Promise((resolve) => setTimeout(resolve, 600))
    const cutMs = performance.now()
    second.link.cut(kind)
    await expect.poll(() => stream.endedMs, { timeout: 8_000 }).toBeGreaterThan(0)
    expect(stream.endedMs - cutMs).toBeLessThan(6_000)
    expect((await ask(second, '/api/status', token)).status).toBe(503)
    await second.link.restore()
    await expect.poll(async () => (await ask(second, '/api/status', token)).status, { timeout: 15_000, interval: 300 }).toBe(200)
  },
  45_000,
)
