/** Two runtimes in this process that share a PostgreSQL as two nodes do, with a scripted model and tool each. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { scriptedModel } from '@sluice/agent/testing/scripted-model'
import { type OpenRuntime, openRuntime } from '@sluice/runtime'
import { defineFeature, defineTool, type ModelCallOptions, shardOfSession } from '@sluice/sdk'
import { openSecretBox } from '@sluice/store/secret-box'
import storePostgres from '@sluice/store-postgres'
import * as v from 'valibot'

export interface TestRuntime {
  readonly runtime: OpenRuntime
  /** The texts that the model of this node was asked. */
  readonly asked: readonly string[]
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
export async function startRuntime({ url, schema, toml = '', answer, act }: TestRuntimeOptions): Promise<TestRuntime> {
  const dataDir = join(folder, `node-${++count}`)
  mkdirSync(dataDir, { mode: 0o700 })
  copyFileSync(join(folder, 'secret.key'), join(dataDir, 'secret.key'))
  const asked: string[] = []
  const state = { acted: 0 }
  const model = scriptedModel([
    async (options) => {
      const text = lastText(options)
      const isAnswered = options.prompt.at(-1)?.role === 'tool'
      if (!isAnswered) asked.push(text)
      if (text.startsWith('act') && !isAnswered) return { calls: [{ id: 'call-1', name: 'act', input: {} }] }
      return { text: (await answer?.(text)) ?? `answer to ${text}` }
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
  writeFileSync(configFile, `${store}\n[cluster]\nname = "test"\nnode = "node-${count}"\n${toml}`, { mode: 0o600 })
  const runtime = await openRuntime({
    features,
    dataDir,
    configFile,
    env: {},
    profile: 'test',
    version: '0',
    quiet: true,
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
