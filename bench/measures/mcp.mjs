// Tools of MCP servers, compared with the bare client of the SDK, and turns of an agent that has many of them.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bareServer, LOAD_CONFIG, runLoad, startSluice } from '../lib/sluice.mjs'

const MAX_SECS = 120
const [SERVERS, TOOLS] = [3, 20]
/** The bound for a call through the agent, in calls of the bare client. */
const CALLS_MAX = 1.5
const READY_MS_MAX = 60_000
const POLL_MS = 100
const SERVER = bareServer('mcp-tools')

export async function measureMcpCalls({ scratch, rounds, scale }) {
  return rounds({ full: 5, quick: 1 }, async () => {
    const folder = mkdtempSync(join(scratch, 'mcp-'))
    const times = await runLoad({ scratch, name: 'mcp', job: { folder, server: SERVER, slices: scale(20), calls: 50 } })
    rmSync(folder, { recursive: true, force: true })
    const { bare, read, effect, native } = times
    return {
      'mcp-read': { ours: read, bare, detail: times },
      'mcp-effect': { ours: effect, bare: native + CALLS_MAX * bare, detail: times },
    }
  })
}

const section = (number) => `[mcp.servers.s${number}]
command = ${JSON.stringify(process.execPath)}
args = ${JSON.stringify([SERVER, String(TOOLS)])}
`
const WITH_SERVERS = `${LOAD_CONFIG}
[security.sandbox]
enabled = false
${Array.from({ length: SERVERS }, (_, number) => section(number)).join('')}`
const WITHOUT = `${LOAD_CONFIG}\n[security.sandbox]\nenabled = false\n`

/** Resolves once the agent has the tools of all servers. */
async function untilListed({ url, token }) {
  for (const endMs = performance.now() + READY_MS_MAX; ; await sleep(POLL_MS)) {
    const { tools } = await (await fetch(`${url}/api/tools`, { headers: { authorization: `Bearer ${token}` } })).json()
    const count = tools.filter(({ name }) => name.startsWith('mcp__')).length
    if (count === SERVERS * TOOLS) return
    if (performance.now() > endMs) throw new Error(`the agent has ${count} of ${SERVERS * TOOLS} tools`)
  }
}

export async function measureMcpTurns({ scratch, rounds, scale }) {
  return rounds({ full: 5, quick: 1 }, async () => {
    const own = mkdtempSync(join(scratch, 'mcp-'))
    const targets = []
    try {
      for (const config of [WITHOUT, WITH_SERVERS]) targets.push(await startSluice({ scratch: own, config, profile: 'full' }))
      await untilListed(targets[1])
      const job = { targets, maxSecs: MAX_SECS, connections: 1, slices: scale(200), requests: 5 }
      const [without, withServers] = await runLoad({ scratch: own, name: 'turns-beside', job })
      return { 'mcp-turn': { ours: withServers.p50Ms, bare: without.p50Ms, detail: { ours: withServers, bare: without } } }
    } finally {
      for (const server of targets) await server.stop()
      rmSync(own, { recursive: true, force: true })
    }
  })
}
