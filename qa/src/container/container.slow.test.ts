/** Builds the image by the Dockerfile with a real engine, and runs it by compose.yaml: read-only, as a user without privileges. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROOT } from '../daemons/bundle.ts'
import { type DockerEngine, dockerEngine } from '../docker-engine.ts'
import { readGuides } from '../guides/guide.ts'
import { type Compose, compose, composeProgram } from './compose.ts'
import { makeNodeImage, NODE_IMAGE } from './node-image.ts'

const run = promisify(execFile)
/** The name in compose.yaml. */
const IMAGE = 'sluice'
const BUILD_MS_MAX = 1_800_000
const WAIT_MS_MAX = 300_000
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024
const CONFINED = ['--read-only', '--tmpfs=/tmp', '--cap-drop=ALL', '--security-opt=no-new-privileges:true', '--network=none']

const folder = mkdtempSync(join(tmpdir(), 'container-'))
const found = await dockerEngine()
const engine: DockerEngine | undefined = 'missing' in found ? undefined : found
if ('missing' in found) console.warn(`no container is built: ${found.missing}`)
afterAll(async () => {
  await engine?.stop()
  rmSync(folder, { recursive: true, force: true })
}, WAIT_MS_MAX)

interface Finished {
  readonly code: number
  readonly output: string
}

/** Runs docker to its end, whatever its exit code. */
async function docker(...args: string[]): Promise<Finished> {
  const env = { ...engine?.env, DOCKER_BUILDKIT: '0' }
  try {
    const { stdout, stderr } = await run('docker', args, { env, maxBuffer: OUTPUT_BYTES_MAX })
    return { code: 0, output: stdout + stderr }
  } catch (error) {
    const { code = 1, stdout = '', stderr = '' } = error as { code?: number; stdout?: string; stderr?: string }
    return { code, output: stdout + stderr }
  }
}

async function build(profile: string, tag: string): Promise<void> {
  const args = [`NODE_IMAGE=${NODE_IMAGE}`, `PROFILE=${profile}`].map((arg) => `--build-arg=${arg}`)
  const { code, output } = await docker('build', '--network=host', ...args, `--tag=${tag}`, ROOT)
  if (code !== 0) throw new Error(`the image was not built:\n${output.slice(-4000)}`)
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

beforeAll(async () => {
  if (!engine) return
  await makeNodeImage(engine)
  await build('minimal', IMAGE)
}, BUILD_MS_MAX)

describe.skipIf(!engine)('the image', () => {
  test('starts with a configuration that refuses to run commands unconfined, and passes its own test by Landlock', {
    timeout: WAIT_MS_MAX,
  }, async () => {
    const { code, output } = await docker('run', '--rm', ...CONFINED, IMAGE, 'doctor')
    expect(output).toMatch(/^ok\s+sandbox\s+fsrestrict works/m)
    expect(code).toBe(0)
  })

  test('fails its own test in a container in which no command can be confined', { timeout: WAIT_MS_MAX }, async () => {
    const filter = join(folder, 'no-landlock.json')
    const syscalls = [{ names: ['landlock_create_ruleset'], action: 'SCMP_ACT_ERRNO' }]
    writeFileSync(filter, JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW', syscalls }))
    const { code, output } = await docker('run', '--rm', ...CONFINED, `--security-opt=seccomp=${filter}`, IMAGE, 'doctor')
    expect(output).toMatch(/^fail\s+sandbox\s+commands are refused/m)
    expect(code).toBe(1)
  })

  test.each(['standard', 'full'])('can be built from the profile %s', { timeout: BUILD_MS_MAX }, async (profile) => {
    await build(profile, `${IMAGE}:${profile}`)
    const { code, output } = await docker('run', '--rm', ...CONFINED, `${IMAGE}:${profile}`, 'doctor')
    expect(output).toMatch(/^ok\s+sandbox\s+fsrestrict works/m)
    expect(code).toBe(0)
  })
})

interface DaemonStatus {
  readonly turns_running: number
  readonly sandbox: { readonly backend: string } | null
}

describe.skipIf(!engine)('the container of compose.yaml', () => {
  const state = { url: '', id: '' }
  let up: Compose

  const inside = async (command: string): Promise<string> => (await docker('exec', state.id, 'sh', '-c', command)).output

  async function shell(command: string): Promise<string> {
    const response = await fetch(`${state.url}/webhook`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ message: `/tool shell ${JSON.stringify({ command })}` }),
    })
    return JSON.stringify(await response.json())
  }

  const daemonStatus = async (): Promise<DaemonStatus> => (await (await fetch(`${state.url}/api/status`)).json()) as DaemonStatus

  beforeAll(async () => {
    if (!engine) return
    const port = await freePort()
    state.url = `http://127.0.0.1:${port}`
    up = compose(await composeProgram(engine, join(folder, 'compose'), { SVC_GATEWAY_HOST: '127.0.0.1', SVC_GATEWAY_PORT: String(port) }))
    const settings = ['provider.kind', 'offline', 'gateway.require_pairing', 'false', 'security.policy.level', 'full']
    await up('run', '--rm', 'sluice', 'config', 'set', ...settings, 'security.policy.allowed_commands', '["*"]')
    await up('up', '--detach', '--no-build')
    state.id = await up('ps', '--quiet', 'sluice')
    // The limit of time of this hook ends the wait.
    while ((await fetch(`${state.url}/ready`).catch(() => undefined))?.status !== 200) await new Promise((done) => setTimeout(done, 250))
  }, WAIT_MS_MAX)
  afterAll(async () => {
    if (engine) await up('down', '--volumes')
  }, WAIT_MS_MAX)

  test('runs as a user without privileges on a read-only file system', async () => {
    const status = await inside('cat /proc/self/status')
    expect(status).toMatch(/^Uid:\s+10001/m)
    expect(status).toMatch(/^CapEff:\s+0+$/m)
    expect(status).toMatch(/^CapBnd:\s+0+$/m)
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m)
    expect(await inside('touch /opt/sluice/x /usr/x')).toMatch(/Read-only file system[\s\S]*Read-only file system/)
  })

  test('runs commands confined, without any privilege', { timeout: WAIT_MS_MAX }, async () => {
    await shell('touch proof')
    const listed = await shell('ls')
    expect(listed).toContain('proof')
    expect(listed).not.toContain('without a sandbox')
    expect((await daemonStatus()).sandbox?.backend).toBe('fsrestrict')
  })

  test('becomes healthy', { timeout: WAIT_MS_MAX }, async () => {
    const health = async (): Promise<string> => (await docker('inspect', state.id, '--format', '{{.State.Health.Status}}')).output.trim()
    await expect.poll(() => health(), { timeout: WAIT_MS_MAX - 10_000, interval: 1000 }).toBe('healthy')
  })

  test('lets a running turn end before it stops, and keeps its data', { timeout: WAIT_MS_MAX }, async () => {
    const turn = shell('sleep 2')
    await expect.poll(async () => (await daemonStatus()).turns_running, { timeout: WAIT_MS_MAX - 20_000, interval: 20 }).toBe(1)
    await up('stop')
    expect(await turn).toContain('"response"')
    expect((await docker('inspect', state.id, '--format', '{{.State.ExitCode}}')).output.trim()).toBe('0')
    await up('start')
    await expect
      .poll(async () => (await fetch(`${state.url}/ready`)).status, {
        timeout: WAIT_MS_MAX - 20_000,
        interval: 250,
      })
      .toBe(200)
    expect(await shell('ls')).toContain('proof')
  })
})

describe.skipIf(!engine)('docs/guides/docker.md', () => {
  test('has commands that succeed', { timeout: BUILD_MS_MAX }, async () => {
    if (!engine) return
    const guide = readGuides().find(({ name }) => name === 'docker.md')
    const script = guide?.blocks.flatMap(({ language, text }) => (language === 'sh' ? text : [])).join('') ?? ''
    expect(script).toContain('docker-compose up')
    const place = join(folder, 'guide')
    const variables = { SVC_GATEWAY_HOST: '127.0.0.1', SVC_GATEWAY_PORT: String(await freePort()) }
    const { env, words } = await composeProgram(engine, place, variables)
    // The engine of the test can neither pull images nor make networks.
    const programs = join(place, 'bin')
    mkdirSync(programs)
    const program = (name: string, text: string) => writeFileSync(join(programs, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
    program('docker-compose', `exec ${words.join(' ')} "$@"`)
    const own = `case $1 in build) set -- "$@" --network=host --build-arg=NODE_IMAGE=${NODE_IMAGE} ;; esac`
    program('docker', `${own}\nPATH='${engine.env.PATH}' exec docker "$@"`)
    const path = `${programs}:${engine.env.PATH}`
    await run('sh', ['-eu', '-c', script], { cwd: ROOT, env: { ...env, DOCKER_BUILDKIT: '0', PATH: path }, maxBuffer: OUTPUT_BYTES_MAX })
  })
})
