/** The built daemon as a service of a real systemd: start, confinement, reload, crash, watchdog, restart under load, upgrade, stop. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { bundle } from '../../daemons/bundle.ts'
import { debianProgram } from '../../debian-program.ts'
import { readGuides } from '../../guides/guide.ts'
import { type VmTest, vmCase } from '../../vm/vm-case.ts'
import { keptIn, Load } from './service-load.ts'

const BUILD = 'service'
const HOW_TO_BUILD = 'npm run build -- full --features sandbox-userns --name service'
const DATA = '/var/lib/sluice'
const URL_BASE = 'http://127.0.0.1:42617'
const NODE = '/opt/node/bin/node'
const DROP_IN = '/etc/systemd/system/sluice.service.d'
const POLL_MS = 200
const TEST_SECS = 600
const JOURNAL_LINES = '80'

/** The tests are root already. */
const SUDO = `#!/bin/sh
if [ "$1" = -E ]; then shift; fi
if [ "$1" = -u ]; then user=$2; shift 2; exec runuser -u "$user" -- "$@"; fi
exec "$@"
`

const run = promisify(execFile)
const output = async (file: string, ...args: string[]): Promise<string> => (await run(file, args)).stdout.trim()
const systemctl = (...args: string[]): Promise<string> => output('systemctl', ...args)
const sluice = (...args: string[]): Promise<string> => output(NODE, '/opt/sluice/sluice.mjs', ...args)
const property = async (name: string): Promise<string> =>
  (await systemctl('show', 'sluice.service', `--property=${name}`)).replace(/^.*?=/, '')
const journal = (): Promise<string> => output('journalctl', '--boot', '--no-pager', '--output=cat')

/** Waits for a condition; the time limit of the test ends the wait. */
async function until(what: string, isTrue: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  while (!(await isTrue().catch(() => false))) {
    if (signal.aborted) throw new Error(`did not happen: ${what}`)
    await sleep(POLL_MS)
  }
}

const isHealthy = async (): Promise<boolean> => (await fetch(`${URL_BASE}/health`)).ok

interface Settings {
  readonly sandbox: string
}

const configure = ({ sandbox }: Settings): Promise<void> =>
  writeFile(
    join(DATA, 'config.toml'),
    `[provider]
kind = "offline"
[gateway]
require_pairing = false
webhook_rate_limit_per_minute = 0
[security.policy]
level = "full"
allowed_commands = ["*"]
[security.sandbox]
backend = "${sandbox}"
required = true
`,
  )

/** Puts Node, the bundle and bubblewrap where a system service can run them. */
async function prepare(): Promise<void> {
  await writeFile('/usr/local/bin/sluice', `#!/bin/sh\nexec ${NODE} /opt/sluice/sluice.mjs "$@"\n`, { mode: 0o755 })
  await writeFile('/usr/local/bin/sudo', SUDO, { mode: 0o755 })
  await mkdir('/opt/node', { recursive: true })
  await output('mount', '--bind', join(process.execPath, '../..'), '/opt/node')
  await cp(join(bundle(BUILD), '..'), '/opt/sluice', { recursive: true })
  const bubblewrap = await debianProgram({ packages: ['bubblewrap'], program: 'usr/bin/bwrap' })
  if ('path' in bubblewrap && bubblewrap.path !== '/usr/bin/bwrap') await cp(bubblewrap.path, '/usr/bin/bwrap')
  await mkdir(DATA, { recursive: true })
}

interface DaemonStatus {
  readonly version: string
  readonly turns_running: number
  readonly sandbox: { readonly backend: string; readonly detail: string } | null
}

const daemonStatus = async (): Promise<DaemonStatus> => (await (await fetch(`${URL_BASE}/api/status`)).json()) as DaemonStatus

interface Turn {
  readonly response: string
}

async function shell(command: string): Promise<string> {
  const response = await fetch(`${URL_BASE}/webhook`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message: `/tool shell ${JSON.stringify({ command })}` }),
  })
  const body = (await response.json()) as Turn
  assert.equal(response.status, 200, JSON.stringify(body))
  return body.response
}

/** The sandbox was tried when it was chosen; here its command works in the workspace. */
async function checkConfined(backend: string, signal: AbortSignal): Promise<void> {
  await until(`the sandbox ${backend} works`, async () => (await daemonStatus()).sandbox?.backend === backend, signal)
  await shell('touch proof')
  const listed = await shell('ls')
  assert.match(listed, /proof/)
  assert.doesNotMatch(listed, /without a sandbox/)
}

/** Prints the end of the journal if the test fails. */
const explained =
  (test: VmTest): VmTest =>
  async (context) => {
    try {
      await test(context)
    } catch (error) {
      console.log(await systemctl('list-jobs').catch(String))
      console.log(await output('journalctl', '--no-pager', '--boot', `--lines=${JOURNAL_LINES}`).catch(String))
      throw error
    }
  }

const TESTS: Readonly<Record<string, VmTest>> = {
  'install starts a service with its own user, and waits until it is ready': async () => {
    await prepare()
    await configure({ sandbox: 'fsrestrict' })
    await sluice('service', 'install')
    assert.ok(await isHealthy())
    const status = JSON.parse(await sluice('service', 'status', '--json'))
    assert.deepEqual(
      { ...status, pid: status.pid > 1 },
      {
        manager: 'systemd',
        scope: 'system',
        installed: true,
        running: true,
        enabled: true,
        state: 'active (running)',
        pid: true,
        restarts: 0,
        outdated: false,
      },
    )
    assert.equal(await output('stat', '-c', '%U %a', DATA), 'sluice 700')
    assert.match(await readFile(`/proc/${status.pid}/status`, 'utf8'), /^NoNewPrivs:\s+1$/m)
    assert.match(await sluice('status', '--data-dir', DATA), /running/)
  },
  'commands run under Landlock in the most restricted unit': ({ signal }) => checkConfined('fsrestrict', signal),
  'commands run in namespaces in the unit for them': async ({ signal }) => {
    await configure({ sandbox: 'userns' })
    await sluice('service', 'install')
    await until('the service is ready', isHealthy, signal)
    await checkConfined('userns', signal)
    await configure({ sandbox: 'fsrestrict' })
    await sluice('service', 'install')
    await until('the service is ready', isHealthy, signal)
  },
  'reload reads the configuration again in the same process': async ({ signal }) => {
    const pid = await property('MainPID')
    await systemctl('reload', 'sluice.service')
    await until('the reload', async () => (await journal()).includes('reading the configuration again'), signal)
    await until('the end of the reload', async () => (await property('SubState')) === 'running', signal)
    assert.equal(await property('MainPID'), pid)
  },
  'a crash is followed by a restart': async ({ signal }) => {
    const pid = await property('MainPID')
    await systemctl('kill', '--signal=SIGKILL', '--kill-whom=main', 'sluice.service')
    await until('a new process', async () => (await property('SubState')) === 'running' && (await property('MainPID')) !== pid, signal)
    assert.ok(await isHealthy())
    assert.equal(await property('NRestarts'), '1')
  },
  'the watchdog replaces a daemon that hangs': async ({ signal, after }) => {
    await mkdir(DROP_IN, { recursive: true })
    await writeFile(join(DROP_IN, 'quick.conf'), '[Service]\nWatchdogSec=40\nTimeoutAbortSec=2\n')
    after(() => rm(DROP_IN, { recursive: true }))
    await systemctl('daemon-reload')
    await systemctl('restart', 'sluice.service')
    const pid = await property('MainPID')
    process.kill(Number(pid), 'SIGSTOP')
    await until('a new process', async () => (await property('SubState')) === 'running' && (await property('MainPID')) !== pid, signal)
    assert.match(await journal(), /Watchdog timeout/)
    assert.ok(await isHealthy())
  },
  'a restart under load loses nothing, and answers 503 for at most a second': async ({ signal }) => {
    await systemctl('daemon-reload')
    const load = new Load(URL_BASE, 'load', signal)
    await until('messages are answered', async () => load.answered.length >= 10, signal)
    await systemctl('restart', 'sluice.service')
    const before = load.answered.length
    await until('messages are answered after the restart', async () => load.answered.length >= before + 10, signal)
    await load.stop()
    console.log(`restart under load: ${JSON.stringify(load.summary())}`)
    assert.ok(load.summary().unavailableMs <= 1000, JSON.stringify(load.summary()))
    assert.equal(load.summary().refused, 0)
    // A turn that the stop interrupted is resumed after the start.
    const isKept = async (): Promise<boolean> => {
      const kept = new Set(await keptIn(URL_BASE, load.session))
      return load.answered.every((text) => kept.has(text))
    }
    await until('every answered message is in the session', isKept, signal)
    const kept = await keptIn(URL_BASE, load.session)
    assert.equal(new Set(kept).size, kept.length, 'a message ran twice')
  },
  'a restart waits for the turn that runs': async ({ signal }) => {
    const turn = shell('sleep 3')
    await until('the turn runs', async () => (await daemonStatus()).turns_running === 1, signal)
    await systemctl('restart', 'sluice.service')
    assert.doesNotMatch(await turn, /interrupted/)
  },
  'an upgrade takes effect with a restart': async ({ signal }) => {
    const { version } = await daemonStatus()
    for (const name of await readdir('/opt/sluice')) {
      if (!name.endsWith('.mjs')) continue
      const file = join('/opt/sluice', name)
      const text = await readFile(file, 'utf8')
      if (text.includes(`version:"${version}"`)) await writeFile(file, text.replaceAll(`version:"${version}"`, 'version:"9.9.9"'))
    }
    await systemctl('restart', 'sluice.service')
    await until('the new version', async () => (await daemonStatus()).version === '9.9.9', signal)
  },
  'a wrong configuration ends the service without a restart': async ({ signal }) => {
    await writeFile(join(DATA, 'config.toml'), 'nonsense = 1\n')
    await assert.rejects(systemctl('restart', 'sluice.service'))
    await until('the failure', async () => (await property('ActiveState')) === 'failed', signal)
    await until(
      'the end of the socket',
      async () => (await systemctl('show', 'sluice.socket', '--property=ActiveState')).endsWith('=inactive'),
      signal,
    )
    assert.equal(await property('ExecMainStatus'), '78')
    assert.equal(await property('NRestarts'), '0')
    await configure({ sandbox: 'fsrestrict' })
    await systemctl('start', 'sluice.service')
    assert.ok(await isHealthy())
  },
  'a stop ends the service cleanly and closes its port': async () => {
    await systemctl('stop', 'sluice.socket')
    assert.equal(await property('Result'), 'success')
    await assert.rejects(fetch(`${URL_BASE}/health`))
    await systemctl('start', 'sluice.service')
    assert.ok(await isHealthy())
  },
  'uninstall leaves the data and nothing else': async () => {
    await sluice('service', 'uninstall')
    await assert.rejects(fetch(`${URL_BASE}/health`))
    assert.equal(existsSync('/etc/systemd/system/sluice.service'), false)
    assert.equal(existsSync(join(DATA, 'sluice.db')), true)
  },
  'the commands of docs/guides/systemd.md succeed': async () => {
    const guide = readGuides().find(({ name }) => name === 'systemd.md')
    const script = guide?.blocks.flatMap(({ language, text }) => (language === 'sh' ? text : [])).join('')
    assert.ok(script)
    await output('sh', '-eu', '-c', script)
  },
}

export default vmCase({
  systemd: true,
  memoryMib: 2048,
  testTimeoutSecs: TEST_SECS,
  async skipReason() {
    if (process.env.SLUICE_SLOW !== '1') return 'it takes minutes: SLUICE_SLOW=1 pnpm test:vm service'
    if (!existsSync('/lib/systemd/systemd')) return 'this machine has no systemd'
    if (!existsSync(bundle(BUILD))) return `the bundle is not built: ${HOW_TO_BUILD}`
    const bubblewrap = await debianProgram({ packages: ['bubblewrap'], program: 'usr/bin/bwrap' })
    return 'missing' in bubblewrap ? bubblewrap.missing : undefined
  },
  tests: Object.fromEntries(Object.entries(TESTS).map(([title, test]) => [title, explained(test)])),
})
