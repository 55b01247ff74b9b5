/** The event log of several nodes on one schema, with faults of the server. */
import type { LoggedEvent } from '@sluice/sdk'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startProxy } from '../testing/cut-proxy.ts'
import { openNode, type TestNode } from '../testing/nodes.ts'
import { startPostgres, type TestServer } from '../testing/postgres-server.ts'
import { WAITING_MAX } from './event-log.ts'

let server: TestServer
let schemas = 0
const undo: (() => Promise<unknown>)[] = []
beforeAll(async () => {
  server = await startPostgres({ inMemory: true })
})
afterEach(async () => {
  for (const end of undo.splice(0).reverse()) await end()
})
afterAll(() => server.stop())

interface Followed {
  readonly node: TestNode
  readonly seen: LoggedEvent[]
  readonly starts: number[]
  /** The number of times that events arrived. */
  arrivals: number
}

async function follow(schema: string, url = server.url, isWatched = true): Promise<Followed> {
  const node = await openNode(url, schema)
  undo.push(() => node.store.close())
  const followed: Followed = { node, seen: [], starts: [], arrivals: 0 }
  const onStart = ({ seq }: { readonly seq: number }): void => void followed.starts.push(seq)
  const onEvents = (events: readonly LoggedEvent[]): void => {
    followed.seen.push(...events)
    followed.arrivals++
  }
  await node.cluster.events.follow({ onStart, onEvents, isWatched: () => isWatched }, 100)
  return followed
}

const nodes = async (count: number): Promise<readonly Followed[]> => {
  const schema = `events_${schemas++}`
  const all: Followed[] = []
  for (let at = 0; at < count; at++) all.push(await follow(schema))
  return all
}

const seqs = ({ seen }: Followed) => seen.map(({ seq }) => seq)
const append = ({ node }: Followed, text: string) => new Promise<number | null>((resolve) => node.cluster.events.append(text, resolve))

test('every node sees the events of all in one order, each once and without a gap', async () => {
  const all = await nodes(3)
  for (let round = 0; round < 100; round++) {
    for (const [at, { node }] of all.entries()) node.cluster.events.append(`${at} ${round}`)
    if (round % 7 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  for (const followed of all) await expect.poll(() => followed.seen.length, { timeout: 5_000 }).toBe(300)
  const [first, ...others] = all
  if (!first) throw new Error('there are three nodes')
  const start = first.starts[0] ?? 0
  expect(seqs(first)).toEqual(Array.from({ length: 300 }, (_, at) => start + at + 1))
  for (const other of others) {
    expect(other.seen.map(({ seq, text }) => [seq, text])).toEqual(first.seen.map(({ seq, text }) => [seq, text]))
    expect(other.seen.filter(({ isOwn }) => isOwn)).toHaveLength(100)
  }
  for (const at of [0, 1, 2]) {
    const own = first.seen.filter(({ text }) => text.startsWith(`${at} `)).map(({ text }) => Number(text.slice(2)))
    expect(own).toEqual(Array.from({ length: 100 }, (_, round) => round))
  }
})

test('a node that starts later gets the newest events first', async () => {
  const [first] = await nodes(1)
  if (!first) throw new Error('there is a node')
  for (let at = 0; at < 150; at++) await append(first, String(at))
  const later = await follow(`events_${schemas - 1}`)
  expect(later.seen.map(({ text }) => text)).toEqual(Array.from({ length: 100 }, (_, at) => String(at + 50)))
  expect(seqs(later)).toEqual(seqs(first).slice(-100))
})

test('a node where nobody waits for events reads those of other nodes once a second', async () => {
  const schema = `events_${schemas++}`
  const first = await follow(schema)
  const watched = await follow(schema)
  const unwatched = await follow(schema, server.url, false)
  const startedMs = performance.now()
  for (let at = 0; at < 50; at++) {
    await append(first, `event ${at}`)
    // Its own events are no reason to read either.
    if (at % 10 === 0) await append(unwatched, `own event ${at}`)
  }
  for (const followed of [watched, unwatched]) await expect.poll(() => followed.seen.length, { timeout: 5_000 }).toBe(55)
  expect(unwatched.seen).toEqual(watched.seen.map((event) => ({ ...event, isOwn: event.text.startsWith('own') })))
  const looks = Math.floor((performance.now() - startedMs) / 1000) + 1
  expect(unwatched.arrivals).toBeLessThanOrEqual(looks)
  expect(watched.arrivals).toBeGreaterThan(unwatched.arrivals)
  await append(first, 'last')
  await unwatched.node.cluster.events.catchUp()
  expect(unwatched.seen.at(-1)?.text).toBe('last')
}, 30_000)

test('events that follow one another closely share statements', async () => {
  const [first] = await nodes(1)
  if (!first) throw new Error('there is a node')
  const startedMs = performance.now()
  for (let at = 0; at < 60; at++) {
    first.node.cluster.events.append(String(at))
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  await append(first, 'last')
  const tookMs = performance.now() - startedMs
  // While a read is under way, the events of the node itself arrive with it.
  await first.node.cluster.events.catchUp()
  expect(first.seen.map(({ text }) => text)).toEqual([...Array.from({ length: 60 }, (_, at) => String(at)), 'last'])
  const client = new pg.Client(server.url)
  await client.connect()
  const { rows } = await client.query(`SELECT count(DISTINCT xmin::text)::int AS statements FROM events_${schemas - 1}.events`)
  await client.end()
  expect(rows[0].statements).toBeLessThanOrEqual(Math.ceil(tookMs / 20) + 1)
}, 30_000)

test('events that were dropped leave numbers out, so that every node knows how many are missing', async () => {
  const proxy = await startProxy(server.port)
  undo.push(() => proxy.close())
  const schema = `events_${schemas++}`
  const other = await follow(schema)
  const cut = await follow(schema, `postgres://postgres@127.0.0.1:${proxy.port}/postgres`)
  await append(cut, 'before')
  proxy.refuse()
  let dropped = 0
  for (let at = 0; at < WAITING_MAX + 500; at++) cut.node.cluster.events.append(`event ${at}`, (seq) => (dropped += seq === null ? 1 : 0))
  expect(dropped).toBe(500)
  proxy.accept()
  await expect.poll(() => cut.seen.length, { timeout: 10_000 }).toBe(WAITING_MAX + 1)
  await append(cut, 'after')
  for (const followed of [other, cut]) {
    await expect.poll(() => followed.seen.at(-1)?.text, { timeout: 5_000 }).toBe('after')
    const numbers = seqs(followed)
    expect(followed.seen.map(({ text }) => text)).toEqual([
      'before',
      ...Array.from({ length: WAITING_MAX }, (_, at) => `event ${at}`),
      'after',
    ])
    const missing = numbers.reduce((sum, seq, at) => sum + (at === 0 ? 0 : seq - (numbers[at - 1] ?? 0) - 1), 0)
    expect(missing).toBe(500)
  }
}, 30_000)

test('a connection that breaks during appends loses and repeats no event', async () => {
  const proxy = await startProxy(server.port)
  undo.push(() => proxy.close())
  const schema = `events_${schemas++}`
  const other = await follow(schema)
  const cut = await follow(schema, `postgres://postgres@127.0.0.1:${proxy.port}/postgres`)
  const stored: (number | null)[] = []
  for (let round = 0; round < 40; round++) {
    for (let at = 0; at < 5; at++) cut.node.cluster.events.append(`${round} ${at}`, (seq) => stored.push(seq))
    if (round % 8 === 3) proxy.swallowAnswers()
    await new Promise((resolve) => setTimeout(resolve, 10))
    if (round % 8 === 3) proxy.cut()
  }
  const expected = Array.from({ length: 200 }, (_, at) => `${Math.floor(at / 5)} ${at % 5}`)
  for (const followed of [other, cut]) {
    await expect.poll(() => followed.seen.length, { timeout: 10_000 }).toBe(200)
    expect(followed.seen.map(({ text }) => text)).toEqual(expected)
  }
  expect(stored).toEqual(seqs(other))
}, 30_000)

test('after a crash of the server, the log starts again with higher numbers', async () => {
  const own = await startPostgres()
  undo.push(() => own.stop())
  const first = await follow('events', own.url)
  const second = await follow('events', own.url)
  await append(first, 'before')
  await expect.poll(() => second.seen.length, { timeout: 3_000 }).toBe(1)
  await own.kill()
  first.node.cluster.events.append('while it is down')
  await own.start()
  await expect.poll(() => first.seen.length, { timeout: 10_000 }).toBe(2)
  await append(second, 'after')
  for (const followed of [first, second]) {
    await expect.poll(() => followed.seen.map(({ text }) => text), { timeout: 5_000 }).toEqual(['before', 'while it is down', 'after'])
    expect(followed.starts).toHaveLength(2)
    expect(seqs(followed)).toEqual(seqs(followed).toSorted((a, b) => a - b))
    expect(followed.starts[1]).toBeGreaterThan(seqs(followed)[0] ?? Number.POSITIVE_INFINITY)
  }
}, 30_000)

test.each(['refuse', 'swallowAnswers'] as const)(
  'a store that loses its database (%s) while its last events wait closes soon',
  async (how) => {
    const proxy = await startProxy(server.port)
    undo.push(() => proxy.close())
    const { node } = await follow(`events_${schemas++}`, `postgres://postgres@127.0.0.1:${proxy.port}/postgres`)
    proxy[how]()
    node.cluster.events.append('last')
    await node.store.close()
  },
  15_000,
)
