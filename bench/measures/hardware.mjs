// Boards: the time to read a pin with the agent's tool, compared with a bare serialport, and the cost of the feature without any board.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { timeToFirstAnswer } from '../lib/first-answer.mjs'
import { inspectable } from '../lib/look-inside.mjs'
import { median } from '../lib/numbers.mjs'
import { distFolder, newDataDir, runLoad, sluiceBundle } from '../lib/sluice.mjs'

const ROOT = resolve(import.meta.dirname, '../..')
const PROFILE = 'bench-hardware'
const IDLE_SECS = 3
/** The number of starts in a round: single starts vary too much. */
const STARTS = 9
const MIB = 2 ** 20

export async function measureBoards({ scratch, rounds, scale }) {
  return rounds({ full: 5, quick: 1 }, async () => {
    const { ours, bare, discoveryMs } = await runLoad({ scratch, name: 'boards', job: { slices: scale(20), calls: 100, boards: 3 } })
    return { 'board-read': { ours, bare }, 'board-discovery': { ours: discoveryMs } }
  })
}

/** Builds the minimal profile with the flag `hardware`. */
function buildWithHardware() {
  const args = [join(ROOT, 'scripts', 'build.mjs'), '--features', 'hardware', '--name', PROFILE]
  const { status } = spawnSync(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error('the minimal profile with hardware does not build')
}

const started = (scratch, profile, dataDir, nodeArgs = []) =>
  timeToFirstAnswer({
    scratch,
    argsFor: (port) => [...nodeArgs, sluiceBundle(profile), 'daemon', '--data-dir', dataDir, '--port', String(port)],
  })

async function startMs(scratch, profile, dataDir) {
  const server = await started(scratch, profile, dataDir)
  await server.stop()
  return server.tookMs
}

async function heapMiB(scratch, profile, dataDir) {
  const { nodeArgs, ask } = inspectable(scratch)
  const server = await started(scratch, profile, dataDir, nodeArgs)
  try {
    await sleep(IDLE_SECS * 1000)
    const { heapUsed, external } = await ask(server.pid)
    return (heapUsed + external) / MIB
  } finally {
    await server.stop()
  }
}

export async function measureHardwareIdle({ scratch, rounds }) {
  buildWithHardware()
  const [without, having] = ['minimal', PROFILE].map((profile) => ({ profile, dataDir: newDataDir(scratch) }))
  try {
    // The first start on a data directory creates the database and the compile cache.
    for (const { profile, dataDir } of [without, having]) await startMs(scratch, profile, dataDir)
    return await rounds({ full: 5, quick: 1 }, async () => {
      const differences = []
      for (let start = 0; start < STARTS; start++) {
        const bare = await startMs(scratch, without.profile, without.dataDir)
        differences.push((await startMs(scratch, having.profile, having.dataDir)) - bare)
      }
      // Uses new data directories: other options of Node lead to another compile cache.
      const bareHeap = await heapMiB(scratch, without.profile, newDataDir(scratch))
      const ourHeap = await heapMiB(scratch, having.profile, newDataDir(scratch))
      return { 'hardware-start': { ours: median(differences) }, 'hardware-idle': { ours: ourHeap - bareHeap } }
    })
  } finally {
    rmSync(distFolder(PROFILE), { recursive: true, force: true })
  }
}
