/** Two runtimes in this process that share a PostgreSQL as two nodes do, with a scripted model and tool each. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Approver } from '@sluice/agent'
import { scriptedModel } from '@sluice/agent/testing/scripted-model'
import { type OpenRuntime, openRuntime } from '@sluice/daemon/open-runtime'
import { defineFeature, defineTool, type ModelCallOptions, shardOfSession } from '@sluice/sdk'
import { openSecretBox } from '@sluice/store/secret-box'
import storePostgres from '@sluice/store-postgres'
import { startPostgres, type TestServer } from '@sluice/store-postgres/testing/postgres-server'
import { Link } from '@sluice/testkit/link'
import pg from 'pg'
import * as v from 'valibot'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'

export interface TestRuntime {
  readonly runtime: OpenRuntime
  /** The texts that the model of this node was asked. */
  readonly asked: readonly string[]
  /** The whole prompts, as JSON. */
  readonly prompts: readonly string[]
  /** The number of calls of the tool `act`. */
  acted: number
  close(): Promise<void>
}

export interface TestRuntimeOptions {
  /** The database, over a link of this node. */
  readonly url: string
  readonly schema: string
  readonly toml?: string
  /** Answers a message, or the result of `act`. A text that begins with `act` calls the tool. */
  readonly answer?: (text: string) => Promise<string>
  readonly act?: () => Promise<string>
  /** Decides calls of `act` whose caller cannot. */
  readonly approve?: Approver
}

const folder = mkdtempSync(join(tmpdir(), 'sluice-nodes-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
// The first value that is encrypted creates the key.
openSecretBox(folder).encrypt('', '')
let count = 0

const lastText = ({ prompt }: ModelCallOptions): string => {
  const parts = prompt.flatMap(({ role, content }) => (role === 'user' && typeof content !== 'string' ? content : []))
  return parts.flatMap((part) => (part.type === 'text' ? part.text : [])).at(-1) ?? ''
}

/** Starts what runs turns and approvals of a daemon. */
async function startRuntime({ url, schema, toml = '', answer, act, approve }: TestRuntimeOptions): Promise<TestRuntime> {
  const dataDir = join(folder, `node-${++count}`)
  mkdirSync(dataDir, { mode: 0o700 })
  copyFileSync(join(folder, 'secret.key'), join(dataDir, 'secret.key'))
  const asked: string[] = []
  const prompts: string[] = []
  const state = { acted: 0 }
  const model = scriptedModel([
    async (options) => {
      const text = lastText(options)
      prompts.push(JSON.stringify(options.prompt))
      const isAnswered = options.prompt.at(-1)?.role === 'tool'
      if (!isAnswered) asked.push(text)
      if (text.startsWith('act') && !isAnswered) return { calls: [{ id: 'call-1', name: 'act', input: {} }] }
      return { text: (await answer?.(text)) ?? `answer to ${text}`, usage: { input: 1, output: 1 } }
    },
  ])
  const tool = defineTool({
    name: 'act',
    description: 'Acts.',
    input: v.object({}),
    risk: 'execute',
    egress: false,
    untrusted: false,
    async run() {
      state.acted++
      return (await act?.()) ?? 'acted'
    },
  })
  const features = [
    storePostgres,
    defineFeature({ id: 'provider-offline', build: () => ({ providers: [{ kinds: ['offline'], load: async () => model }] }) }),
    defineFeature({ id: 'x-tools', build: () => ({ tools: [tool] }) }),
  ]
  const configFile = join(dataDir, 'config.toml')
  const store = `[store]\nbackend = "postgres"\nurl = "${url}"\nschema = "${schema}"`
  writeFileSync(configFile, `${store}\n[cluster]\nname = "test"\nnode = "node-${count}"\nconfig = "file"\n${toml}`, { mode: 0o600 })
  const runtime = await openRuntime({
    features,
    dataDir,
    configFile,
    env: {},
    profile: 'test',
    version: '0',
    quiet: true,
    ...(approve && { approve }),
  })
  await runtime.ownership.start()
  await runtime.approvals.start()
  await runtime.ownership.onShards(async (owned) => void (await runtime.agent.resume(owned)))
  const unsubscribe = runtime.store.onChange((change) => {
    runtime.agent.look(change).catch(() => undefined)
    runtime.approvals.look(change).catch(() => undefined)
  })
  return Object.assign(state, {
    runtime,
    asked,
    prompts,
    async close() {
      unsubscribe()
      await runtime.close(0)
    },
  })
}

/** Returns the id of a session of local clients whose shard the node owns. */
export function sessionOf({ runtime }: TestRuntime, name: string): string {
  for (let number = 0; ; number++) {
    const session = `local/${name}-${number}`
    if (runtime.ownership.of(shardOfSession(session))) return session
  }
}

export interface LinkedRuntime extends TestRuntime {
  /** To the database. */
  readonly link: Link
}

let server: TestServer
let schema = ''
let schemas = 0
const links: Link[] = []
const open: LinkedRuntime[] = []

/** Starts a server for the file that calls it, and gives each of its tests a schema. */
export function setUpRuntimes(): void {
  beforeAll(async () => {
    server = await startPostgres({ inMemory: true })
  })
  afterAll(() => server.stop())
  beforeEach(() => {
    schema = `nodes_${schemas++}`
  })
  afterEach(async () => {
    await Promise.all(open.splice(0).map((node) => node.close()))
    await Promise.all(links.splice(0).map((link) => link.close()))
  })
}

/** Runs a statement on the schema of the test. */
export async function inDatabase(text: string): Promise<void> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  await client.query(`SET search_path = ${schema}; ${text}`)
  await client.end()
}

/** Starts a node. Resolves once each node of the test has its share of the shards. */
export async function start(options: Omit<TestRuntimeOptions, 'url' | 'schema'> = {}): Promise<LinkedRuntime> {
  const link = new Link()
  links.push(link)
  const url = new URL(server.url)
  url.port = String(await link.portTo(server.port))
  const node = Object.assign(await startRuntime({ ...options, schema, url: url.href }), { link })
  open.push(node)
  const share = 256 / open.length
  await expect.poll(() => open.map(({ runtime }) => runtime.ownership.held().length)).toEqual(open.map(() => share))
  return node
}
