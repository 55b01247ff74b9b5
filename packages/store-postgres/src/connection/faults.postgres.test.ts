/** The store while its server is killed, its connections break and its process is stopped. */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { isLeaseLost, type Store } from '@sluice/sdk'
import { Link } from '@sluice/testkit/link'
import { reply } from '@sluice/testkit/store-rules/delivery-samples'
import { queuedTurn } from '@sluice/testkit/store-rules/samples'
import { own } from '@sluice/testkit/store-rules/store-bench'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { TTL_MS } from '../cluster/membership.ts'
import { openPostgresStore } from '../open-store.ts'
import { STARTED } from '../tables/message-attempt.ts'
import { STARTED as STARTED_REPLIES } from '../tables/outbox.ts'
import { type CutProxy, startProxy } from '../testing/cut-proxy.ts'
import { startPostgres, type TestServer } from '../testing/postgres-server.ts'
import { UNKNOWN_RESULT } from './group-commit.ts'
import { awayError } from './postgres-error.ts'
import { Reader } from './reader.ts'

let server: TestServer
let schemas = 0
const undo: (() => Promise<unknown>)[] = []
beforeAll(async () => {
  server = await startPostgres()
})
afterEach(async () => {
  for (const end of undo.splice(0).reverse()) await end()
})
afterAll(() => server.stop())

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function open(schema: string, { node = 'node', url = server.url, writers = 2 } = {}): Promise<Store> {
  const store = await openPostgresStore({ url, schema, node, writers, connectMs: 2_000 })
  undo.push(() => store.close())
  return store
}

async function proxied(): Promise<{ readonly proxy: CutProxy; readonly url: string }> {
  const proxy = await startProxy(server.port)
  undo.push(() => proxy.close())
  return { proxy, url: `postgres://postgres@127.0.0.1:${proxy.port}/postgres` }
}

test('a fault of arriving messages ends with one that can be kept, not with other writes', async () => {
  const schema = `faults_${++schemas}`
  const store = await open(schema)
  const admin = new pg.Client(server.url)
  await admin.connect()
  undo.push(() => admin.end())
  await admin.query(`
    CREATE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$;
    CREATE TRIGGER no_room BEFORE INSERT ON ${schema}.inbox FOR EACH ROW EXECUTE FUNCTION ${schema}.refuse()`)
  const keep = (...ids: readonly string[]) =>
    store.inbox.keep({
      channel: 'roomchat',
      verdict: 'v',
      raw: null,
      receivedAtMs: 1,
      messages: ids.map((id) => ({ message: { id, account: 'bot', sender: 'ann', to: { to: 'room' }, text: 'hello' }, session: 's' })),
    })
  for (const ids of [['a'], ['b', 'c']]) {
    await expect(keep(...ids)).rejects.toMatchObject({ code: 'unavailable' })
    await store.keyValue('test').set('beat', 1)
    expect(store.health().fault).toMatch(/No space left/)
    await expect(store.probe()).rejects.toMatchObject({ code: 'unavailable' })
  }
  await admin.query(`DROP TRIGGER no_room ON ${schema}.inbox`)
  await store.probe()
  expect(store.health().fault).toBeNull()
  expect(await store.inbox.list({ limit: 10 })).toEqual([])
  expect(await keep('a', 'b')).toEqual([expect.any(Number), expect.any(Number)])
})

interface Load {
  readonly acknowledged: Map<string, number>
  /** Rejected without a word about a stored change. */
  readonly rejected: Set<string>
  stop(): Promise<void>
}

/** Stores messages on sixteen lanes without a pause. */
function storeMessages(store: Store): Load {
  const acknowledged = new Map<string, number>()
  const rejected = new Set<string>()
  let isOver = false
  let count = 0
  const lane = async () => {
    while (!isOver) {
      const id = `m${++count}`
      const message = { id, account: 'bot', sender: 'ann', to: { to: 'room' }, text: 'hello' }
      try {
        const kept = await store.inbox.keep({
          channel: 'roomchat',
          verdict: 'v',
          raw: null,
          receivedAtMs: 1,
          messages: [{ message, session: id }],
        })
        acknowledged.set(id, Number(kept[0]))
      } catch (error) {
        expect(error).toMatchObject({ code: 'unavailable', isPassing: true })
        if (!(error as Error).message.includes(UNKNOWN_RESULT)) rejected.add(id)
        await sleep(20)
      }
    }
  }
  const lanes = Array.from({ length: 16 }, lane)
  return {
    acknowledged,
    rejected,
    async stop() {
      isOver = true
      await Promise.all(lanes)
    },
  }
}

/** Expects that each acknowledged message is stored once, with its number, and that no rejected one is. */
async function expectExact({ acknowledged, rejected }: Load, schema: string): Promise<void> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const { rows } = await client.query<{ number: string; id: string }>(`SELECT number, message_id AS id FROM ${schema}.inbox`)
  await client.end()
  const stored = new Map(rows.map(({ id, number }) => [id, Number(number)]))
  expect(stored.size).toBe(rows.length)
  expect([...acknowledged].filter(([id, number]) => stored.get(id) !== number)).toEqual([])
  expect([...rejected].filter((id) => stored.has(id))).toEqual([])
}

test('acknowledged messages survive a killed server, and rejected ones are not stored', async () => {
  const schema = `faults_${schemas++}`
  const store = await open(schema)
  const load = storeMessages(store)
  for (let round = 0; round < 4; round++) {
    const before = load.acknowledged.size
    await expect.poll(() => load.acknowledged.size, { interval: 5 }).toBeGreaterThan(before + 40 + 17 * round)
    await server.kill()
    await server.start()
  }
  const before = load.acknowledged.size
  await expect.poll(() => load.acknowledged.size).toBeGreaterThan(before)
  await load.stop()
  expect(load.rejected.size).toBeGreaterThan(0)
  await expectExact(load, schema)
})

test('a connection that breaks in the middle of commits loses and repeats nothing', async () => {
  const schema = `faults_${schemas++}`
  const { proxy, url } = await proxied()
  const store = await open(schema, { url })
  const load = storeMessages(store)
  for (let round = 0; round < 12; round++) {
    const before = load.acknowledged.size
    await expect.poll(() => load.acknowledged.size, { interval: 3 }).toBeGreaterThan(before + round)
    if (round % 2 === 0) {
      // The server commits, but its answers do not arrive.
      proxy.swallowAnswers()
      await sleep(30)
    }
    proxy.cut()
  }
  const before = load.acknowledged.size
  await expect.poll(() => load.acknowledged.size).toBeGreaterThan(before)
  await load.stop()
  await expectExact(load, schema)
})

test('a change that is stored without a word of it is a passing fault, so that its turn resumes and does not fail', async () => {
  const { proxy, url } = await proxied()
  const store = await open(`faults_${schemas++}`, { url })
  await store.turns.enqueue(queuedTurn('turn'))
  proxy.swallowAnswers()
  const started = store.turns.start('turn')
  started.catch(() => undefined)
  await sleep(100)
  proxy.cut()
  await expect(started).rejects.toMatchObject({ code: 'unavailable', message: UNKNOWN_RESULT, isPassing: true })
})

test('the start of a reply is known to its caller also when the look for its lost answer fails at first', async () => {
  const { proxy, url } = await proxied()
  const store = await open(`faults_${schemas++}`, { url })
  const owned = await own(store)
  const [number = 0] = await owned.outbox.add([reply('a')])
  const { all } = Reader.prototype
  let failures = 0
  const look = vi.spyOn(Reader.prototype, 'all').mockImplementation(function (this: Reader, statement) {
    const isLook = statement.text === STARTED_REPLIES
    return isLook && ++failures <= 2 ? Promise.reject(awayError('The connection broke again.')) : all.call(this, statement)
  } as typeof all)
  undo.push(async () => look.mockRestore())
  proxy.swallowAnswers()
  const started = owned.outbox.start(number)
  started.catch(() => undefined)
  await sleep(100)
  proxy.cut()
  expect(await started).toMatchObject({ number, attempts: 1 })
  expect(failures).toBe(3)
})

test('a node whose clock is an hour ahead makes no other node wait for that hour', async () => {
  const schema = `faults_${schemas++}`
  const now = Date.now
  const ahead = vi.spyOn(Date, 'now').mockImplementation(() => now() + 3_600_000)
  undo.push(async () => ahead.mockRestore())
  const first = await open(schema, { node: 'first' })
  const owned = await own(first)
  const [number = 0] = await owned.outbox.add([reply('a')])
  await owned.outbox.start(number)
  await owned.outbox.retry(number, { error: 'away', atMs: Date.now() + 5_000 })
  await first.close()
  ahead.mockRestore()
  const [waiting] = await (await own(await open(schema, { node: 'second' }))).outbox.waiting({ after: 0, limit: 10 })
  expect(waiting?.number).toBe(number)
  expect(Math.abs((waiting?.atMs ?? 0) - (Date.now() + 5_000))).toBeLessThan(10_000)
})

test('the result of an attempt whose answer was lost can be read again', async () => {
  const store = await open('read_again')
  await store.close()
  const client = new pg.Client({ connectionString: server.url, options: '-c search_path=read_again' })
  await client.connect()
  undo.push(() => client.end())
  expect((await client.query(STARTED, [[1]])).rows).toEqual([])
})

test('a server without a free connection is unavailable until there is one', async () => {
  const schema = `faults_${schemas++}`
  const role = `limited_${schemas}`
  const admin = new pg.Client({ connectionString: server.url })
  await admin.connect()
  undo.push(() => admin.end())
  await admin.query(`CREATE ROLE ${role} LOGIN; GRANT CREATE ON DATABASE postgres TO ${role}`)
  const url = server.url.replace('postgres@', `${role}@`)
  const store = await open(schema, { url })
  await admin.query(`ALTER ROLE ${role} CONNECTION LIMIT 0`)
  await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`)
  await expect(store.keyValue('a').set('x', 1)).rejects.toMatchObject({ code: 'unavailable', retryAfterSecs: expect.any(Number) })
  expect(store.health().fault).not.toBeNull()
  await admin.query(`ALTER ROLE ${role} CONNECTION LIMIT -1`)
  await store.keyValue('a').set('x', 2)
  expect(await store.keyValue('a').get('x')).toBe(2)
  expect(store.health().fault).toBeNull()
})

interface Holder {
  readonly child: ChildProcess
  readonly lines: string[]
}

async function startHolder(schema: string, node: string): Promise<Holder> {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../fixtures/hold-lease.ts'), server.url, schema, node], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  undo.push(async () => child.kill('SIGKILL'))
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
  await expect.poll(() => lines.length, { timeout: 30_000 }).toBeGreaterThan(20)
  return { child, lines }
}

test('another node takes over from a killed one once its leases have expired, and not before', async () => {
  const schema = `faults_${schemas++}`
  const store = await open(schema, { node: 'second' })
  const { child, lines } = await startHolder(schema, 'first')
  await expect(store.leases.acquire('shards/0-255', AbortSignal.timeout(2_000))).rejects.toMatchObject({ name: 'TimeoutError' })
  expect(lines.some((line) => line.startsWith('refused'))).toBe(false)
  child.kill('SIGKILL')
  const startedMs = performance.now()
  await store.leases.acquire('shards/0-255')
  const tookMs = performance.now() - startedMs
  expect(tookMs).toBeGreaterThan(TTL_MS - 2_500)
  expect(tookMs).toBeLessThan(TTL_MS + 4_000)
})

test('a node that was stopped in a transaction blocks no other, and writes nothing after it goes on', async () => {
  const schema = `faults_${schemas++}`
  const store = await open(schema, { node: 'second' })
  const { child, lines } = await startHolder(schema, 'first')
  for (let count = lines.length; lines.length < count + 3; ) await sleep(1)
  child.kill('SIGSTOP')
  const startedMs = performance.now()
  const owned = store.under(await store.leases.acquire('shards/0-255'))
  expect(performance.now() - startedMs).toBeLessThan(TTL_MS + 6_000)
  await owned.keyValue('count').set('second', 1)
  const before = await owned.keyValue('count').get('first')
  const records = (await owned.sops.verify()).records
  child.kill('SIGCONT')
  await expect.poll(() => lines.at(-1), { timeout: 30_000 }).toMatch(/^refused true false/)
  expect(await owned.keyValue('count').get('first')).toBe(before)
  expect(await owned.sops.verify()).toMatchObject({ records, broken: null })
})

test('a lease passes to a waiting node as soon as its holder stops', async () => {
  const schema = `faults_${schemas++}`
  const first = await open(schema, { node: 'first' })
  const lease = await first.leases.acquire('leader/cron')
  const second = await open(schema, { node: 'second' })
  const taken = second.leases.acquire('leader/cron')
  await sleep(300)
  expect(lease.mayAct()).toBe(true)
  const startedMs = performance.now()
  await first.close()
  const later = await taken
  expect(performance.now() - startedMs).toBeLessThan(2_000)
  expect(later.epoch).toBeGreaterThan(lease.epoch)
})

test('a holder that cannot reach the database stops acting before another node may take over', async () => {
  const schema = `faults_${schemas++}`
  const { proxy, url } = await proxied()
  const store = await open(schema, { node: 'first', url })
  const lease = await store.leases.acquire('leader/cron')
  const second = await open(schema, { node: 'second' })
  let takenAtMs = 0
  const taken = second.leases.acquire('leader/cron', AbortSignal.timeout(TTL_MS + 20_000)).then(() => {
    takenAtMs = performance.now()
  })
  let doubtAtMs = 0
  const watching = setInterval(() => {
    if (!lease.mayAct()) doubtAtMs ||= performance.now()
  }, 10)
  undo.push(async () => clearInterval(watching))
  proxy.refuse()
  await taken
  expect(doubtAtMs).toBeGreaterThan(0)
  expect(doubtAtMs).toBeLessThan(takenAtMs)
  proxy.accept()
  await expect
    .poll(async () => {
      const error = await store
        .under(lease)
        .keyValue('a')
        .set('x', 1)
        .catch((reason: unknown) => reason)
      return isLeaseLost(error)
    })
    .toBe(true)
})

test('a half-open connection is given up, its commits are looked up, and closing does not wait for it', async () => {
  const schema = `faults_${schemas++}`
  const link = new Link()
  undo.push(() => link.close())
  const url = `postgres://postgres@127.0.0.1:${await link.portTo(server.port)}/postgres`
  const store = await open(schema, { url })
  const load = storeMessages(store)
  await expect.poll(() => load.acknowledged.size, { interval: 5 }).toBeGreaterThan(40)
  await link.cut('silent')
  await sleep(500)
  // The old connections never carry anything again.
  await link.restore()
  const before = load.acknowledged.size
  await expect.poll(() => load.acknowledged.size).toBeGreaterThan(before)
  await load.stop()
  await expectExact(load, schema)
  await link.cut('silent')
  const writing = store.inbox.counts().catch(() => undefined)
  const startedMs = performance.now()
  await store.close()
  await writing
  expect(performance.now() - startedMs).toBeLessThan(30_000)
})
