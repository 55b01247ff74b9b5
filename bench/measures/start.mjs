// Cold start: the time from the start of the process to the first 200 on /health, and the memory of the idle process.
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { timeToFirstAnswer } from '../lib/first-answer.mjs'
import { residentMiB } from '../lib/machine.mjs'
import { bareServer, newDataDir, sluiceBundle } from '../lib/sluice.mjs'

const IDLE_SECS = 5

const bareArgs = (port) => [bareServer('http'), String(port)]
const daemonArgs = (profile, dataDir) => (port) => [sluiceBundle(profile), 'daemon', '--data-dir', dataDir, '--port', String(port)]

async function startTime(scratch, argsFor) {
  const server = await timeToFirstAnswer({ scratch, argsFor })
  await server.stop()
  return server.tookMs
}

/** Measures the first start on an empty data directory, and the second, which uses the compile cache of the first. */
async function twoStarts(scratch, profile) {
  const dataDir = newDataDir(scratch)
  const argsFor = daemonArgs(profile, dataDir)
  const first = await startTime(scratch, argsFor)
  const second = await startTime(scratch, argsFor)
  rmSync(dataDir, { recursive: true, force: true })
  return { first, second }
}

export async function measureStarts({ scratch, rounds }) {
  return rounds({ full: 15, quick: 3 }, async () => {
    const bare = await startTime(scratch, bareArgs)
    const minimal = await twoStarts(scratch, 'minimal')
    const full = await twoStarts(scratch, 'full')
    return {
      'start-minimal': { ours: minimal.second, bare },
      'start-full': { ours: full.second, bare },
      'first-start-minimal': { ours: minimal.first, bare },
      'first-start-full': { ours: full.first, bare },
    }
  })
}

/** Measures both sides while they are idle at the same time. The daemon is in its second start, which is the usual case. */
export async function measureIdleMemory({ scratch, rounds }) {
  const dataDir = newDataDir(scratch)
  await startTime(scratch, daemonArgs('minimal', dataDir))
  return rounds({ full: 9, quick: 1 }, async () => {
    const servers = []
    try {
      for (const argsFor of [bareArgs, daemonArgs('minimal', dataDir)]) servers.push(await timeToFirstAnswer({ scratch, argsFor }))
      await sleep(IDLE_SECS * 1000)
      const [bare, ours] = servers.map(({ pid }) => residentMiB(pid))
      return { 'idle-memory': { ours, bare } }
    } finally {
      for (const server of servers) await server.stop()
    }
  })
}
