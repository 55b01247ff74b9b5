// Profiles the ingress of a build with its names and of the bare server, under the same load, and records the time of each function in
// profile.json, from which docs/performance.md is generated: `node bench/profile.mjs`.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { killAll, runNode, startServer } from './lib/processes.mjs'
import { writeProfile } from './lib/profile-record.mjs'
import { setting } from './lib/setting.mjs'
import { bareServer, distFolder, newDataDir, runLoad, startBare, writeConfig } from './lib/sluice.mjs'
import { ingressConfig } from './measures/ingress.mjs'

const ROOT = resolve(import.meta.dirname, '..')
const BUILD = 'bench-names'
const LOAD = { kind: 'chatapp', connections: 16, warmup: 6000, requests: 12_000, maxSecs: 120 }
const FLAGS = ['--cpu-prof', '--cpu-prof-interval', '250']
const FUNCTIONS = 24
const LOADED = /^\/\/ (packages\/[^/]+|node_modules\/\S*?([^/]+))\//

const DATABASE = 'the database: statements, commits and their wait for the disk'
const WRITES = /^(writev|write\w+String|writeBuffer|utf8Slice|latin1Slice|asciiSlice)$/
const isStatement = ({ name, file }) => /^packages\/store\b/.test(file) && /^(run|insert|get)$/.test(name)

/** The areas of the table, each with its functions. The first match counts; the other functions belong to their package. */
const AREAS = [
  [DATABASE, (one) => isStatement(one) || (one.file === 'webhook.mjs' && one.name === 'flush')],
  ['HMAC and SHA-256', ({ name, file }) => /^node:.*crypto/.test(file) || /^(hexWrite|hexSlice|timingSafeEqual)$/.test(name)],
  ['HTTP, streams and sockets of Node', ({ name, file }) => file.startsWith('node:') || WRITES.test(name)],
  ['garbage collection', ({ name }) => name === '(garbage collector)'],
  ['the engine itself', ({ name, file }) => file === '' || name.startsWith('(')],
  ['the bare server', ({ file }) => file === 'webhook.mjs'],
]

const areaOf = (fn) => AREAS.find(([, matches]) => matches(fn))?.[0] ?? fn.file

/** Returns a function that names the package of a line of a bundled file, which has a comment before each module. */
function modulesOf(folder) {
  const known = new Map()
  const startsOf = (file) => {
    const lines = readFileSync(join(folder, file), 'utf8').split('\n')
    return lines.flatMap((line, at) => {
      const [, path] = LOADED.exec(line) ?? []
      return path ? [[at, path]] : []
    })
  }
  return (file, line) => {
    if (!known.has(file)) known.set(file, startsOf(file))
    return known.get(file).findLast(([at]) => at <= line)?.[1] ?? file
  }
}

/** Returns the self time of each function for one message, in µs, during a load that ended `sinceMs` before the profile. */
function selfTimes(profile, { secs, sinceMs, requests }, moduleOf) {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node.callFrame]))
  const to = profile.endTime - sinceMs * 1000
  const from = to - secs * 1e6
  const times = new Map()
  let atUs = profile.startTime
  profile.samples.forEach((id, at) => {
    const tookUs = profile.timeDeltas[at]
    atUs += tookUs
    const { functionName, url, lineNumber } = nodes.get(id)
    if (atUs < from || atUs > to || functionName === '(idle)') return
    const last = url.split('/').at(-1)
    const isBundled = url.startsWith('file:') && last !== 'webhook.mjs'
    const file = isBundled ? moduleOf(last, lineNumber) : url.startsWith('node:') ? url : last
    const name = functionName || '(function without a name)'
    const key = `${name} ${file}`
    const one = times.get(key) ?? { name, file, us: 0 }
    one.us += tookUs / requests
    times.set(key, one)
  })
  return [...times.values()].sort((a, b) => b.us - a.us)
}

async function profiled(own, start, moduleOf) {
  const profiles = mkdtempSync(join(own, 'profile-'))
  const server = await start([...FLAGS, '--cpu-prof-dir', profiles])
  const result = await runLoad({ scratch: own, name: 'post', job: { ...LOAD, url: server.url, token: server.token, pid: server.pid } })
  const endedAtMs = performance.now()
  // A busy machine takes long to write the profile, which a stop would not wait for.
  process.kill(server.pid, 'SIGTERM')
  await server.ended
  const sinceMs = performance.now() - endedAtMs
  const [file] = readdirSync(profiles)
  const profile = JSON.parse(readFileSync(join(profiles, file), 'utf8'))
  const functions = selfTimes(profile, { secs: LOAD.requests / result.perSec, sinceMs, requests: LOAD.requests }, moduleOf)
  const sumOf = (members) => members.reduce((sum, { us }) => sum + us, 0)
  const areas = Object.entries(Object.groupBy(functions, areaOf)).map(([name, members]) => ({ name, us: sumOf(members) }))
  return { areas: areas.sort((a, b) => b.us - a.us), functions: functions.slice(0, FUNCTIONS) }
}

const build = [join(ROOT, 'scripts', 'build.mjs'), 'minimal', '--name', BUILD, '--names']
const built = spawnSync(process.execPath, build, { stdio: ['ignore', 'ignore', 'inherit'] })
if (built.status !== 0) process.exit(1)
const own = mkdtempSync(join(tmpdir(), 'sluice-profile-'))
process.on('exit', () => {
  killAll()
  rmSync(own, { recursive: true, force: true })
})
const model = await startBare({ scratch: own, name: 'model', args: ['600'] })
const bare = await profiled(
  own,
  async (flags) => {
    const server = await startServer({ scratch: own, args: [...flags, bareServer('webhook'), 'messages', join(own, 'inbox.db')] })
    return { ...server, token: 'x' }
  },
  () => '',
)
const ours = await profiled(
  own,
  async (flags) => {
    const dataDir = newDataDir(own)
    writeConfig(dataDir, ingressConfig({ modelUrl: model.url }))
    const bundle = join(distFolder(BUILD), 'sluice.mjs')
    const token = await runNode({ scratch: own, args: [bundle, 'pair', 'token', '--name', 'bench', '--data-dir', dataDir] })
    return { ...(await startServer({ scratch: own, args: [...flags, bundle, 'daemon', '--data-dir', dataDir, '--port', '0'] })), token }
  },
  modulesOf(distFolder(BUILD)),
)
await model.stop()
writeProfile({ setting: setting(own), load: LOAD, bare, ours })
process.exit(0)
