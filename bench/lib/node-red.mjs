// Node-RED, a peer that takes webhooks too: installed from npm into a folder of its own, only when a run asks for it.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, statusOf } from './first-answer.mjs'
import { startNode } from './processes.mjs'

const VERSION = '5.0.7'
const READY_MAX_MS = 60_000
const POLL_MS = 100

/** A flow that answers each request. It checks no signature and stores nothing. A node without a place would be a configuration. */
const FLOW = [
  { id: 'tab', type: 'tab', label: 'bench', disabled: false },
  { id: 'in', type: 'http in', z: 'tab', x: 0, y: 0, name: '', url: '/chatapp', method: 'post', upload: false, wires: [['out']] },
  { id: 'out', type: 'http response', z: 'tab', x: 0, y: 0, name: '', statusCode: '200', headers: {}, wires: [] },
  { id: 'get', type: 'http in', z: 'tab', x: 0, y: 0, name: '', url: '/health', method: 'get', upload: false, wires: [['out']] },
]

/** Installs Node-RED unless it is there. Returns its folder. */
export function installNodeRed(version = VERSION) {
  const folder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'sluice-bench', `node-red-${version}`)
  const installed = join(folder, 'node_modules', 'node-red')
  if (existsSync(join(installed, 'package.json'))) return installed
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private": true}')
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', `node-red@${version}`]
  const { status } = spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error(`npm could not install node-red@${version}`)
  return installed
}

/** Starts Node-RED with a flow that accepts the messages of the bench. */
export async function startNodeRed(scratch) {
  const folder = installNodeRed()
  const settings = join(scratch, 'settings.js')
  const port = await freePort()
  writeFileSync(join(scratch, 'flows.json'), JSON.stringify(FLOW))
  writeFileSync(
    settings,
    `module.exports = { uiHost: '127.0.0.1', uiPort: ${port}, flowFile: 'flows.json', httpAdminRoot: false, logging: { console: { level: 'error' } } }`,
  )
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const server = startNode({ scratch, args: [join(folder, bin['node-red']), '--userDir', scratch, '--settings', settings] })
  const deadline = performance.now() + READY_MAX_MS
  while ((await statusOf(port, '/health')) !== 200) {
    if (performance.now() > deadline) {
      await server.stop()
      throw new Error('Node-RED did not answer')
    }
    await sleep(POLL_MS)
  }
  return { url: `http://127.0.0.1:${port}`, pid: server.child.pid, token: 'x'.repeat(64), stop: server.stop }
}
