// A daemon that may use 512 MB of memory: whole messages at a steady rate, with many subscribers and a reload a minute.
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSecs, residentMiB } from '../lib/machine.mjs'
import { createMemoryGroup } from '../lib/memory-group.mjs'
import { median } from '../lib/numbers.mjs'
import { startPlatform } from '../lib/platform.mjs'
import { startServer } from '../lib/processes.mjs'
import { loadProgram, newDataDir, runLoad, startSluice } from '../lib/sluice.mjs'
import { untilDone } from '../lib/until-done.mjs'
import { wholeMessagesConfig } from '../load/chatapp-requests.mjs'

const LIMIT_BYTES = 512 * 1024 * 1024
const MESSAGES = 500_000
const CLIENTS = { sse: 200, ws: 200 }
const LOAD = { connections: 16, secs: 60 }
const SAMPLE_MS = 1000
/** By then, everything that is loaded or cached once is in memory. */
const WARM_MINUTES = 10

/** Returns the slope of a straight line through values at 0, 1, 2 …, by least squares. */
function slope(values) {
  const middle = (values.length - 1) / 2
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const weights = values.map((_, at) => at - middle)
  return values.reduce((sum, value, at) => sum + weights[at] * (value - mean), 0) / weights.reduce((sum, weight) => sum + weight ** 2, 0)
}

const peakMiB = (pid) => Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024

/** Samples the resident memory until `work` ends. Resolves to the median. */
async function residentDuring(pid, work) {
  const samples = [residentMiB(pid)]
  const timer = setInterval(() => samples.push(residentMiB(pid)), SAMPLE_MS)
  try {
    await work
  } finally {
    clearInterval(timer)
  }
  return median(samples)
}

export async function measureSmallMachine({ scratch, minutes, note }) {
  const own = mkdtempSync(join(scratch, 'small-'))
  const group = createMemoryGroup(LIMIT_BYTES)
  if (!group) note('this user may make no control group: the daemon runs without a limit of memory, which it is told of by nothing')
  const platform = await startPlatform()
  const dataDir = newDataDir(own)
  const server = await startSluice({ scratch: own, dataDir, config: wholeMessagesConfig(platform.url), cgroup: group?.folder })
  const job = JSON.stringify({ url: server.url, token: server.token, ...CLIENTS })
  const watchers = await startServer({ scratch: own, args: [loadProgram('watchers'), job] })
  const perSec = Math.round(MESSAGES / (minutes * LOAD.secs))
  const seen = []
  let sent = 0
  let died
  void server.ended.then((error) => {
    died = error
  })
  try {
    for (let minute = 1; minute <= minutes; minute++) {
      appendFileSync(join(dataDir, 'config.toml'), `# reload ${minute}\n`)
      process.kill(server.pid, 'SIGHUP')
      const before = cpuSecs(server.pid)
      const load = runLoad({ scratch: own, name: 'paced', job: { url: server.url, first: sent, perSec, ...LOAD } })
      const MiB = await residentDuring(server.pid, load)
      const { failed, p99Ms } = await load
      await untilDone(server)
      sent += perSec * LOAD.secs
      const cpuUs = ((cpuSecs(server.pid) - before) * 1e6) / (perSec * LOAD.secs)
      seen.push({ minute, sent, failed, p99Ms, MiB, cpuUs, peakMiB: peakMiB(server.pid), lost: sent - platform.seen.answered })
      note(`small-machine ${JSON.stringify(seen.at(-1))}`)
      if (died) throw died
    }
    const { bytes } = await (await fetch(watchers.url)).json()
    const last = seen.at(-1)
    const settled = seen.slice(Math.min(WARM_MINUTES, Math.floor(minutes / 2)))
    const detail = { seen, limited: group !== undefined, watchedBytes: bytes, ...platform.seen }
    return [
      {
        'small-peak': { ours: last.peakMiB, oursCpuUs: median(settled.map(({ cpuUs }) => cpuUs)), detail },
        'small-growth': { ours: slope(settled.map(({ MiB }) => MiB)) * 10 },
        'small-killed': { ours: group?.kills() ?? 0 },
        'small-lost': { ours: sent - platform.seen.answered },
        'small-doubled': { ours: platform.seen.doubled },
      },
    ]
  } finally {
    await watchers.stop()
    await server.stop()
    platform.close()
    await sleep(100)
    group?.remove()
    rmSync(own, { recursive: true, force: true })
  }
}
