// Calls the plugin of the template and, alternately, the same function in plain JavaScript in a worker. `node plugins.mjs JOB`, JOB as
// JSON: {scratch, slices, calls, colds}. Prints {ours, bare, coldMs, bareColdMs} as JSON, as medians: microseconds of a call with 1 KiB
// in and out, and milliseconds of a first call, which reads, checks, meters and compiles the module and starts a worker.
import { hash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { build } from 'esbuild'
import { systemClock } from '../../packages/kit/src/time/system-clock.ts'
import { compileTemplate } from '../../packages/plugins-wasm/src/testing/compile.ts'
import { median } from '../lib/numbers.mjs'

const WARM_UP_SLICES = 5
const job = JSON.parse(process.argv[2])
const TEXT = 'Hello, World: 12'.repeat(64)
const ANSWER = 'Uryyb, Jbeyq: 12'.repeat(64)

/** Bundles the sources as a build does: workers that run TypeScript would first strip its types. */
async function built() {
  const source = (name) => join(import.meta.dirname, '../../packages/plugins-wasm/src', `${name}.ts`)
  const outdir = join(job.scratch, 'built')
  const options = { bundle: true, splitting: true, minify: true, format: 'esm', platform: 'node', outExtension: { '.js': '.mjs' } }
  await build({ ...options, entryPoints: [source('plugin-threads'), source('plugin-folder')], outdir })
  const [threads, folder] = await Promise.all(
    ['plugin-threads', 'plugin-folder'].map((name) => import(pathToFileURL(join(outdir, `${name}.mjs`)))),
  )
  return { ...threads, ...folder }
}

const PLAIN = `
import { parentPort } from 'node:worker_threads'
function rotate(input) {
  const codes = new Array(input.length)
  for (let index = 0; index < input.length; index++) {
    const code = input.charCodeAt(index)
    const first = code >= 97 ? 97 : 65
    codes[index] = code >= first && code < first + 26 ? first + ((code - first + 13) % 26) : code
  }
  return String.fromCharCode(...codes)
}
parentPort.on('message', (text) => parentPort.postMessage(rotate(text)))
`

function plainWorker() {
  const file = join(job.scratch, 'plain.mjs')
  writeFileSync(file, PLAIN)
  const worker = new Worker(file)
  const call = (text) =>
    new Promise((resolve, reject) => {
      worker.once('message', resolve).once('error', reject)
      worker.postMessage(text)
    }).finally(() => worker.removeAllListeners('error'))
  return { call, end: () => worker.terminate() }
}

const { PluginThreads, PluginFolder } = await built()
const limits = { time_ms: 10_000, memory_mb: 64, fuel: 5_000_000_000, input_kb: 256, output_kb: 256, instances: 4 }
const module = await compileTemplate()
const home = join(job.scratch, 'plugins', 'rot13')
mkdirSync(home, { recursive: true })
writeFileSync(join(home, 'plugin.wasm'), module)
const manifest = { name: 'rot13', version: '1.0.0', description: 'Rotates.', sha256: hash('sha256', module, 'hex') }
writeFileSync(join(home, 'manifest.json'), JSON.stringify(manifest))
const folder = new PluginFolder(join(job.scratch, 'plugins'), { signature_mode: 'off', trusted_publisher_keys: [] })
const plugin = { name: 'rot13', hasNetwork: false, load: async () => (await folder.read('rot13')).module }
const { signal } = new AbortController()
const pluginThreads = () => {
  const threads = new PluginThreads(systemClock, limits)
  return { call: (text) => threads.run(plugin, text, { signal, sendRequest: async () => '' }), end: () => threads.close() }
}

/** Returns the milliseconds of all calls. */
async function timed({ call }, calls) {
  const start = performance.now()
  for (let done = 0; done < calls; done++) if ((await call(TEXT)) !== ANSWER) throw new Error('the answer is wrong')
  return performance.now() - start
}

async function cold(make) {
  const start = performance.now()
  const subject = make()
  if ((await subject.call(TEXT)) !== ANSWER) throw new Error('the answer is wrong')
  const tookMs = performance.now() - start
  await subject.end()
  return tookMs
}

const [ours, bare] = [pluginThreads(), plainWorker()]
const slices = []
for (let slice = 0; slice < WARM_UP_SLICES + job.slices; slice++) {
  slices.push({ ours: await timed(ours, job.calls), bare: await timed(bare, job.calls) })
}
await Promise.all([ours.end(), bare.end()])
const colds = []
for (let round = 0; round < job.colds; round++) colds.push({ ours: await cold(pluginThreads), bare: await cold(plainWorker) })
const of = (list, name) => median(list.map((values) => values[name]))
const warm = slices.slice(WARM_UP_SLICES)
const perCall = (name) => (of(warm, name) * 1000) / job.calls
console.log(JSON.stringify({ ours: perCall('ours'), bare: perCall('bare'), coldMs: of(colds, 'ours'), bareColdMs: of(colds, 'bare') }))
