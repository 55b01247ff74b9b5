/**
 * Stops nodes of a cluster again and again, one to all at once, while others start, connections change their node, messages arrive, turns
 * run and the database is slow or gone: each stop ends, and only one without a database needs its limit.
 * SLUICE_STOPS is the number of rounds, SLUICE_TEST_SEED repeats the choices of a run.
 */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { scriptedModel } from '@sluice/agent/testing/scripted-model'
import { type Daemon, startDaemon } from '@sluice/daemon'
import { DRAIN_MS, STOP_MS_MAX } from '@sluice/daemon/stop-times'
import { type Channel, type Deliver, defineFeature } from '@sluice/sdk'
import { openSecretBox } from '@sluice/store/secret-box'
import storePostgres from '@sluice/store-postgres'
import { startPostgres, type TestServer } from '@sluice/store-postgres/testing/postgres-server'
import { testHost } from '@sluice/testkit/host'
import { Link } from '@sluice/testkit/link'
import { seededRandom, testSeed } from '@sluice/testkit/random'
import { afterAll, beforeAll, expect, test } from 'vitest'

const ROUNDS = Number(process.env.SLUICE_STOPS ?? 30)
const NODES = 3
/** A stop with a database ends turns of 300 ms and hands over; the machine may be busy. */
const STOP_MS = DRAIN_MS - 1_000
const OVERDUE = 'daemon ends without waiting longer for its stop'

let server: TestServer
let folder = ''
beforeAll(async () => {
  server = await startPostgres({ inMemory: true })
  folder = mkdtempSync(join(tmpdir(), 'sluice-stops-'))
  openSecretBox(folder).encrypt('', '')
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

const seed = testSeed()
const random = seededRandom('stops')
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** One of the nodes, whose daemon is started and stopped. */
class StoppedNode {
  readonly name: string
  readonly link = new Link()
  readonly #dataDir: string
  readonly #deliver = new Set<Deliver>()
  daemon: Daemon | undefined
  logs: ReturnType<typeof testHost>['logs'] = []

  constructor(name: string) {
    this.name = name
    this.#dataDir = join(folder, name)
    mkdirSync(this.#dataDir, { mode: 0o700 })
    copyFileSync(join(folder, 'secret.key'), join(this.#dataDir, 'secret.key'))
  }

  async start(): Promise<void> {
    const url = new URL(server.url)
    url.port = String(await this.link.portTo(server.port))
    const configFile = join(this.#dataDir, 'config.toml')
    const store = `[store]\nbackend = "postgres"\nurl = "${url.href}"\nconnect_timeout_secs = 4`
    writeFileSync(configFile, `${store}\n[cluster]\nname = "stops"\nnode = "${this.name}"\nconfig = "file"\n`, { mode: 0o600 })
    const { log, logs } = testHost()
    this.logs = logs
    const model = scriptedModel([
      async () => {
        await pause(random() * 300)
        return { text: 'an answer', usage: { input: 1, output: 1 } }
      },
    ])
    const channels = ['x', 'y'].map((name): Channel => this.#channel(name))
    this.daemon = await startDaemon({
      features: [
        storePostgres,
        defineFeature({ id: 'provider-offline', build: () => ({ providers: [{ kinds: ['offline'], load: async () => model }] }) }),
        defineFeature({ id: 'x-channels', build: () => ({ channels }) }),
      ],
      dataDir: this.#dataDir,
      configFile,
      env: {},
      profile: 'test',
      version: '0',
      port: 0,
      logger: log,
    })
  }

  #channel(name: string): Channel {
    return {
      name,
      allow: ['*'],
      limits: { text: 100, unit: 'utf16' },
      listen: async (deliver, { signal, report }) => {
        report.connected()
        this.#deliver.add(deliver)
        await new Promise((resolve) => {
          if (signal.aborted) resolve(undefined)
          else signal.addEventListener('abort', resolve, { once: true })
        })
        this.#deliver.delete(deliver)
      },
      send: async () => {
        await pause(random() * 20)
        return { id: 'sent' }
      },
    }
  }

  /** Delivers a message over each connection that this node has. */
  receive(number: number): void {
    for (const deliver of this.#deliver) {
      const about = { id: `m${number}`, account: 'main', sender: `s${number % 40}`, to: { to: `s${number % 40}` }, text: `hello ${number}` }
      deliver(about).catch(() => undefined)
    }
  }

  /** Resolves to the duration of the stop. */
  async stop(): Promise<number> {
    const startedMs = performance.now()
    await this.daemon?.stop()
    return performance.now() - startedMs
  }
}

test('each stop ends, whatever happens meanwhile', { timeout: 3_600_000 }, async () => {
  const nodes = Array.from({ length: NODES }, (_, at) => new StoppedNode(`node-${at}`))
  await Promise.all(nodes.map((node) => node.start()))
  let number = 0
  const traffic = setInterval(() => nodes[number % NODES]?.receive(number++), 20)
  const durations: number[] = []
  const overdue: string[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await pause(random() * 700)
    const isCut = random() < 0.15
    const leaving = nodes.filter(() => random() < 0.5)
    if (leaving.length === 0) leaving.push(nodes[round % NODES] as StoppedNode)
    await Promise.all(
      leaving.map(async (node, at) => {
        // Most stops meet the hand-over of the first one, which takes some 10 to 100 ms.
        await pause(at === 0 ? 0 : random() * 150)
        const { link } = node
        link.delayMs = random() < 0.5 ? 0 : random() * 40
        if (isCut && at === 0) setTimeout(() => void link.cut(random() < 0.5 ? 'silent' : 'reset'), random() * 100)
        const ms = await node.stop()
        link.delayMs = 0
        const isLate = node.logs.some(({ message }) => message === OVERDUE)
        if (!isCut) durations.push(ms)
        // A stop without a database may need its limit.
        if ((isLate && !isCut) || ms > (isCut ? STOP_MS_MAX + 3_000 : STOP_MS)) {
          const waitsFor = node.logs.find(({ message }) => message === OVERDUE)?.fields
          overdue.push(`round ${round}${isCut ? ', cut off' : ''}: ${node.name} took ${Math.round(ms)} ms ${JSON.stringify(waitsFor)}`)
        }
      }),
    )
    for (const { link } of leaving) await link.restore()
    if (overdue.length > 0) break
    await Promise.all(leaving.map((node) => startAgain(node)))
  }
  clearInterval(traffic)
  await Promise.all(nodes.map((node) => node.stop()))
  await Promise.all(nodes.map(({ link }) => link.close()))
  const sorted = durations.toSorted((a, b) => a - b)
  console.log(`seed ${seed}: ${sorted.length} stops with a database, median ${sorted[sorted.length >> 1]} ms, longest ${sorted.at(-1)} ms`)
  expect(overdue, `seed ${seed}`).toEqual([])
  expect(number).toBeGreaterThan(ROUNDS)
})

/** The data directory is locked for as long as a stop that was not waited for goes on. */
async function startAgain(node: StoppedNode): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await node.start()
    } catch (error) {
      if (attempt === 60) throw error
      await pause(500)
    }
  }
}
