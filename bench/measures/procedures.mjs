// Procedures: the cost of an event with few and with many procedures loaded, and the cost of loading many.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { statusOf, timeToFirstAnswer } from '../lib/first-answer.mjs'
import { inspectable } from '../lib/look-inside.mjs'
import { payloadOf, writeProcedures } from '../lib/procedures.mjs'
import { runNode } from '../lib/processes.mjs'
import { loadProgram, newDataDir, runLoad, sluiceBundle, startSluice, writeConfig } from '../lib/sluice.mjs'

const MAX_SECS = 60
const [FEW, SOME, MANY] = [10, 100, 10_000]
/** Work just after the procedures are loaded counts as part of the start. */
const SETTLE_MS = 3000
const POLL_MS = 10

export const procedureConfig = (folder) => `[gateway]
webhook_rate_limit_per_minute = 0

[provider]
kind = "offline"

[sop]
sops_dir = "${folder}"
max_concurrent_total = 10000
approval_timeout_secs = 3600

[log]
level = "warn"
`

/** Writes the procedures once for all measurements of a run. */
function proceduresIn(scratch, count) {
  const folder = join(scratch, `procedures-${count}`)
  if (!existsSync(folder)) writeProcedures(folder, count)
  return { folder, count }
}

/** Posts events alternately to two daemons that differ only in their procedures; returns the latencies of each. */
async function besides(scratch, sides, job) {
  const own = mkdtempSync(join(scratch, 'sops-'))
  const servers = []
  try {
    const targets = []
    for (const { folder, count } of sides) {
      const dataDir = newDataDir(own)
      const server = await startSluice({ scratch: own, dataDir, config: procedureConfig(folder) })
      servers.push(server)
      const database = job.isKept ? { database: join(dataDir, 'sluice.db') } : {}
      targets.push({ url: server.url, token: server.token, procedures: count, ...database })
    }
    const body = payloadOf({ isMet: job.isKept })
    return await runLoad({ scratch: own, name: 'in-turns', job: { body, maxSecs: MAX_SECS, targets, ...job } })
  } finally {
    for (const server of servers) await server.stop()
    rmSync(own, { recursive: true, force: true })
  }
}

/** Measures a request that starts a run, until its answer. The start of the run is in the audit log before the answer. */
export async function measureSopEvents({ scratch, rounds, scale }) {
  const one = proceduresIn(scratch, 1)
  const some = proceduresIn(scratch, SOME)
  return rounds({ full: 5, quick: 2 }, async () => {
    const [bare, ours] = await besides(scratch, [one, some], { isKept: true, slices: scale(40), events: 50 })
    const detail = { ours, bare }
    return {
      'sop-event': { ours: ours.p50Ms, bare: bare.p50Ms, detail },
      'sop-event-p99': { ours: ours.p99Ms, bare: bare.p99Ms, detail },
    }
  })
}

/** Measures the search for the procedures of an event: in the library alone, and in a daemon where no condition is met. */
export async function measureSopMatch({ scratch, rounds, scale }) {
  const few = proceduresIn(scratch, FEW)
  const many = proceduresIn(scratch, MANY)
  const job = { few, many, slices: scale(30), events: 10_000 }
  return rounds({ full: 5, quick: 1 }, async () => {
    const args = ['--expose-gc', loadProgram('match'), JSON.stringify(job)]
    const { kinds, load } = JSON.parse(await runNode({ scratch, args }))
    const [bare, ours] = await besides(scratch, [few, many], { isKept: false, slices: scale(40), events: 50 })
    const matching = Object.entries(kinds).map(([kind, ns]) => [`sop-match-${kind}`, { ours: ns.same, bare: ns.few, detail: ns }])
    const slowest = Object.values(kinds).reduce((worst, ns) => (ns.many / ns.few > worst.many / worst.few ? ns : worst))
    return {
      ...Object.fromEntries(matching),
      'sop-match-spread': { ours: slowest.many, bare: slowest.few, detail: kinds },
      'sop-match-daemon': { ours: ours.p50Ms, bare: bare.p50Ms, detail: { ours, bare } },
      'sop-load': { ours: load.tookMs },
      'sop-load-memory': { ours: load.bytesEach / 1024 },
    }
  })
}

/** Measures a start with many procedures and one without any, each the second start on its data directory. */
export async function measureSopStart({ scratch, rounds }) {
  const { folder } = proceduresIn(scratch, MANY)
  const none = join(scratch, 'none')
  const start = async (sops) => {
    const own = mkdtempSync(join(scratch, 'start-'))
    const { nodeArgs, ask } = inspectable(own, { blocks: true })
    const dataDir = newDataDir(own)
    writeConfig(dataDir, procedureConfig(sops))
    const argsFor = (port) => [...nodeArgs, sluiceBundle('minimal'), 'daemon', '--data-dir', dataDir, '--port', String(port)]
    const once = async () => {
      const begun = performance.now()
      const server = await timeToFirstAnswer({ scratch: own, argsFor })
      try {
        // The daemon is ready once everything is loaded.
        while ((await statusOf(server.port, '/ready')) !== 200) {
          if (performance.now() - begun > MAX_SECS * 1000) throw new Error('the daemon did not get ready')
          await sleep(POLL_MS)
        }
        const readyMs = performance.now() - begun
        await sleep(SETTLE_MS)
        return { ...(await ask(server.pid)), tookMs: server.tookMs, readyMs }
      } finally {
        await server.stop()
      }
    }
    await once()
    const second = await once()
    rmSync(own, { recursive: true, force: true })
    return second
  }
  return rounds({ full: 3, quick: 1 }, async () => {
    const [bare, ours] = [await start(none), await start(folder)]
    const detail = { ours, bare }
    return {
      'sop-start': { ours: ours.tookMs, bare: bare.tookMs, detail },
      'sop-start-ready': { ours: ours.readyMs, bare: bare.readyMs, detail },
      'sop-start-block': { ours: ours.longestBlockMs, bare: bare.longestBlockMs, detail },
    }
  })
}
