// Runs `true` alternately in each sandbox that works on this machine and as a bare child process. `node sandbox.mjs JOB`, JOB as JSON:
// {slices}. Prints {bare, userns?, fsrestrict?} as JSON: medians in milliseconds, from the call to the result.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRunBare, createSpawn } from '@sluice/runtime'
import { systemClock } from '../../packages/kit/src/time/system-clock.ts'
import { median } from '../lib/numbers.mjs'

const WARM_UP_SLICES = 5
const BACKENDS = ['userns', 'fsrestrict']
const MEBIBYTE = 1024 * 1024
const LIMITS = { memoryBytesMax: 2048 * MEBIBYTE, processesMax: 256, fileBytesMax: 1024 * MEBIBYTE, cpuSecsMax: 600 }
const job = JSON.parse(process.argv[2])
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'bench-sandbox-')))
const workspace = join(folder, 'workspace')
const env = { PATH: '/usr/bin:/bin' }
const log = { debug() {}, info() {}, warn: console.error, error: console.error }
const { signal } = new AbortController()

async function backend(name) {
  const { default: feature } = await import(`../../packages/sandbox-${name}/src/index.ts`).catch(() => ({}))
  const parts = feature?.build({ dataDir: folder, clock: systemClock, log }, {})
  const [sandbox] = parts?.sandboxes ?? []
  const found = await sandbox?.probe(signal, createRunBare(systemClock))
  if (found?.available) return { sandbox, close: async () => parts.close?.() }
  process.stderr.write(`${name} is not measured: ${found?.detail ?? 'the package is missing'}\n`)
}

/** Returns a function that runs `true` in the sandbox, as tools run their commands. */
function confined(sandbox) {
  const run = createSpawn({ sandbox: () => sandbox, required: true, limits: LIMITS, closed: [], workspaces: [], log, clock: systemClock })
  const policy = { writable: [workspace], network: false }
  return async () => {
    const result = await run({ file: 'true', args: [], cwd: workspace, env, policy, timeoutMs: 10_000, outputBytesMax: 1000, signal })
    if (result.exitCode !== 0) throw new Error(result.stderr)
  }
}

async function bare() {
  const child = spawn('true', [], { env, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`true ended with ${code}`)
}

const closing = []
const ways = { bare }
for (const name of BACKENDS) {
  const found = await backend(name)
  if (!found) continue
  ways[name] = confined(found.sandbox)
  closing.push(found.close)
}
const took = Object.fromEntries(Object.keys(ways).map((name) => [name, []]))
for (let slice = 0; slice < WARM_UP_SLICES + job.slices; slice++) {
  for (const [name, run] of Object.entries(ways)) {
    const start = performance.now()
    await run()
    if (slice >= WARM_UP_SLICES) took[name].push(performance.now() - start)
  }
}
for (const close of closing) await close()
rmSync(folder, { recursive: true, force: true })
console.log(JSON.stringify(Object.fromEntries(Object.entries(took).map(([name, times]) => [name, median(times)]))))
