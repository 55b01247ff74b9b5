// Calls a tool of an MCP server over stdio alternately with the bare client of the SDK, with the agent's tool, as an effect of a direct
// call, and compares the last with a native effect that does nothing. `node mcp.mjs JOB`, JOB as JSON: {folder, server, slices, calls}.
// Prints the medians {bare, read, effect, native} in milliseconds as JSON.
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { startDaemon } from '../../packages/daemon/src/index.ts'
import mcp from '../../packages/mcp/src/index.ts'
import offline from '../../packages/provider-offline/src/index.ts'
import { defineFeature, defineTool } from '../../packages/sdk/src/index.ts'
import { toolContext } from '../../packages/testkit/src/tool.ts'
import { median } from '../lib/numbers.mjs'

const WARM_UP_SLICES = 3
const READY_MS_MAX = 30_000
const job = JSON.parse(process.argv[2])
const require = createRequire(new URL('../../packages/mcp/package.json', import.meta.url))
const { Client } = require('@modelcontextprotocol/client')
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio')
const v = require('valibot')

const command = { command: process.execPath, args: [job.server, '2'] }
const input = { text: 'hello' }

const bareClient = new Client({ name: 'bench', version: '1' })
await bareClient.connect(new StdioClientTransport(command))

const native = defineTool({
  name: 'native',
  description: 'An effect that takes no time.',
  input: v.object({ text: v.string() }),
  risk: 'write',
  egress: false,
  untrusted: false,
  run: async ({ text }) => text,
})
const fixture = defineFeature({ id: 'x-bench', build: () => ({ tools: [native] }) })

const configFile = join(job.folder, 'config.toml')
writeFileSync(
  configFile,
  `[log]
level = "error"
[provider]
kind = "offline"
[security.policy]
level = "full"
[security.sandbox]
enabled = false
[mcp.servers.bench]
command = ${JSON.stringify(command.command)}
args = ${JSON.stringify(command.args)}
risk = { tool0 = "read", tool1 = "write" }
`,
  { mode: 0o600 },
)
const features = [mcp, offline, fixture]
const place = { dataDir: job.folder, configFile, env: {}, profile: 'bench', version: '0.0.0', host: '127.0.0.1', port: 0 }
const daemon = await startDaemon({ features, ...place })
const { runtime } = daemon
const toolOf = (name) => runtime.snapshot().registry.tools.get(name)
for (const endMs = performance.now() + READY_MS_MAX; !toolOf('mcp__bench__tool0'); ) {
  if (performance.now() > endMs) throw new Error('The server has not listed its tools')
  await new Promise((resolve) => setTimeout(resolve, 20))
}

const { workspace, policy } = runtime.lifecycle.agents().get('main')
const context = toolContext(new AbortController().signal, { agent: 'main', workspace, policy })
const callDirectly = async (tool) => {
  const id = await runtime.agent.accept({
    source: 'call',
    session: null,
    text: JSON.stringify({ tool, input }),
    client: 'bench',
    owner: 'local',
  })
  await runtime.agent.ended(id)
}

const kinds = {
  bare: () => bareClient.callTool({ name: 'tool0', arguments: input }),
  read: () => toolOf('mcp__bench__tool0').run(input, context),
  effect: () => callDirectly('mcp__bench__tool1'),
  native: () => callDirectly('native'),
}
const names = Object.keys(kinds)
const times = Object.fromEntries(names.map((name) => [name, []]))
for (let slice = 0; slice < WARM_UP_SLICES + job.slices; slice++) {
  // The first kind changes from slice to slice, because the order may affect the results.
  for (let turn = 0; turn < names.length; turn++) {
    const name = names[(slice + turn) % names.length]
    for (let call = 0; call < job.calls; call++) {
      const startMs = performance.now()
      await kinds[name]()
      if (slice >= WARM_UP_SLICES) times[name].push(performance.now() - startMs)
    }
  }
}
await bareClient.close()
await daemon.stop()
console.log(JSON.stringify(Object.fromEntries(names.map((name) => [name, median(times[name])]))))
