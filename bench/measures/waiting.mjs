// Runs that wait for the approval of a person, each in its own chat: the cost of many waiting runs.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspectable } from '../lib/look-inside.mjs'
import { cpuSecs } from '../lib/machine.mjs'
import { newDataDir, runLoad, startBare, startSluice } from '../lib/sluice.mjs'
import { chatappConfig } from '../load/chatapp-requests.mjs'
import { procedureConfig } from './procedures.mjs'

/** The first 600 runs make the daemon load code and fill caches, so only the next 1,000 are measured. */
const FEW = 600
const MANY = 1600
/** Longer than the timeouts of sent messages, whose timers are gone by then. */
const IDLE_SECS = 65
const SETTLE_MS = 5000
const WAIT_MAX_MS = 60_000
const POLL_MS = 50

const TOML = `[sop]
name = "message-to-see-to"
description = "Waits for a person before it does anything"
execution_mode = "supervised"
max_concurrent = 10000

[[triggers]]
type = "webhook"
path = "/chatapp"
`
const MD = `# A message to see to

## Steps

1. **Answer it** - Answers what was asked.
`

function writeProcedure(folder) {
  mkdirSync(join(folder, 'message'), { recursive: true })
  writeFileSync(join(folder, 'message', 'SOP.toml'), TOML)
  writeFileSync(join(folder, 'message', 'SOP.md'), MD)
  return folder
}

/** Resolves once `count` approvals are pending and each prompt has been sent. */
async function untilAsked(dataDir, count) {
  const database = new DatabaseSync(join(dataDir, 'sluice.db'), { readOnly: true })
  const pending = database.prepare(`SELECT count(*) AS count FROM approvals JOIN approval_prompts ON approval = approvals.number
    WHERE approvals.state = 'pending' AND approval_prompts.provider_id IS NOT NULL`)
  const deadline = performance.now() + WAIT_MAX_MS
  try {
    for (;;) {
      const { count: found } = pending.get()
      if (found >= count) return
      if (performance.now() > deadline) throw new Error(`only ${found} of ${count} runs have asked for approval within ${WAIT_MAX_MS} ms`)
      await sleep(POLL_MS)
    }
  } finally {
    database.close()
  }
}

async function checkResumed({ url, token }, count) {
  const response = await fetch(`${url}/api/sops`, { headers: { authorization: `Bearer ${token}` } })
  const text = await response.text()
  const active = [...text.matchAll(/"active_runs":(\d+)/g)].reduce((sum, [, runs]) => sum + Number(runs), 0)
  if (active !== count) throw new Error(`${active} of ${count} runs resumed: ${text.slice(0, 200)}`)
}

const kib = (bytes) => bytes / 1024
const heapOf = ({ heapUsed, external }) => heapUsed + external

export async function measureWaiting({ scratch, rounds, scale }) {
  const folder = writeProcedure(join(scratch, 'waiting'))
  const idleSecs = scale(IDLE_SECS)
  return rounds({ full: 2, quick: 1 }, async () => {
    const own = mkdtempSync(join(scratch, 'waiting-'))
    const graph = await startBare({ scratch: own, name: 'graph' })
    const running = new Set([graph])
    const config = `${procedureConfig(folder)}\n${chatappConfig({ apiUrl: graph.url })}`
    const begin = async (dataDir) => {
      const inside = inspectable(dataDir)
      const server = await startSluice({ scratch: own, dataDir, config, nodeArgs: inside.nodeArgs })
      running.add(server)
      return { ...server, dataDir, ask: () => inside.ask(server.pid) }
    }
    const withRuns = async (requests) => {
      const server = await begin(newDataDir(own))
      if (requests === 0) return server
      await runLoad({ scratch: own, name: 'post', job: { ...server, kind: 'chatapp', connections: 4, warmup: 0, requests, maxSecs: 60 } })
      await untilAsked(server.dataDir, requests)
      return server
    }
    try {
      const servers = []
      for (const requests of [0, FEW, MANY]) servers.push(await withRuns(requests))
      await sleep(SETTLE_MS)
      const busySecs = () => servers.map(({ pid }) => cpuSecs(pid))
      const before = busySecs()
      await sleep(idleSecs * 1000)
      const [idleWithNone, , idleWithMany] = busySecs().map((secs, index) => (100 * (secs - before[index])) / idleSecs)
      const [, few, many] = await Promise.all(servers.map(({ ask }) => ask()))

      // Measures again after a restart, without the memory of the load.
      for (const { stop } of servers) await stop()
      const restarted = [await begin(servers[0].dataDir), await begin(servers[2].dataDir)]
      await checkResumed(restarted[1], MANY)
      await sleep(SETTLE_MS)
      const [none, resumed] = await Promise.all(restarted.map(({ ask }) => ask()))
      return {
        'sop-waiting-idle': { ours: idleWithMany, bare: idleWithNone },
        'sop-waiting-heap': { ours: kib(heapOf(many) - heapOf(few)) / (MANY - FEW), detail: { few, many } },
        'sop-waiting-taken-up': { ours: kib(heapOf(resumed) - heapOf(none)) / MANY, detail: { none, resumed } },
        'sop-waiting-resident': { ours: kib(resumed.rss - none.rss) / MANY, detail: { none, resumed } },
      }
    } finally {
      for (const server of running) await server.stop()
      rmSync(own, { recursive: true, force: true })
    }
  })
}
