/** Starts a Docker engine for a test from Debian's unpacked package, with an image of this machine's programs. Needs root on Linux. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { cp, glob, mkdir, mkdtemp, readlink, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { debianProgram, type MissingProgram } from './debian-program.ts'

const run = promisify(execFile)
const READY_ATTEMPTS_MAX = 300
const READY_WAIT_MS = 100
const STOP_MS_MAX = 10_000

/** The image that the engine contains. */
export const ENGINE_IMAGE = 'sluice-test:1'

/** A running engine. */
export interface DockerEngine {
  /** The environment in which `docker` finds this engine. */
  readonly env: Readonly<Record<string, string>>
  stop(): Promise<void>
}

/** The programs in the image, each with its libraries. */
const PROGRAMS =
  `sh perl bash cat ls env cp mv rm ln mkdir mkfifo mknod chmod chown touch truncate dd head tail tr wc sleep true false id echo
  basename cut yes df tar grep sed find setsid nohup unshare mount su timeout printf stat readlink`.split(/\s+/)

/** Starts an engine; `missing` is the reason why none can run here. */
export async function dockerEngine(): Promise<DockerEngine | MissingProgram> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return { missing: 'starting a Docker engine needs root on Linux' }
  const daemon = await debianProgram({ packages: ['docker.io', 'containerd', 'runc', 'tini'], program: 'usr/sbin/dockerd' })
  if ('missing' in daemon) return daemon
  const folder = await mkdtemp(join(tmpdir(), 'engine-'))
  const path = [...['usr/bin', 'usr/sbin'].map((each) => join(daemon.root, each)), process.env.PATH].join(':')
  const env = { ...daemon.env, PATH: path, DOCKER_HOST: `unix://${folder}/docker.sock`, DOCKER_CONFIG: folder }
  const child = spawn('unshare', ['-m', '--propagation', 'private', daemon.path, ...options(folder, daemon.root)], { env, stdio: 'ignore' })
  const stop = () => end(child, folder)
  try {
    await ready(child, env)
    await makeImage(folder, env)
    return { env: { PATH: path, DOCKER_HOST: env.DOCKER_HOST, DOCKER_CONFIG: folder }, stop }
  } catch (error) {
    await stop()
    return { missing: `the Docker engine did not start: ${error instanceof Error ? error.message.split('\n')[0] : error}` }
  }
}

/** No bridge and no firewall rules: a container has its own loopback or the host's network. */
const options = (folder: string, root: string): string[] => [
  `--data-root=${folder}/data`,
  `--exec-root=${folder}/exec`,
  `--pidfile=${folder}/pid`,
  `--host=unix://${folder}/docker.sock`,
  `--init-path=${join(root, 'usr/bin/tini-static')}`,
  '--iptables=false',
  '--ip6tables=false',
  '--bridge=none',
  '--ip-forward=false',
  '--ip-masq=false',
  '--userland-proxy=false',
]

async function ready(child: ChildProcess, env: Record<string, string>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await run('docker', ['version'], { env })
      return
    } catch (error) {
      if (child.exitCode !== null || attempt >= READY_ATTEMPTS_MAX) throw error
      await setTimeout(READY_WAIT_MS)
    }
  }
}

async function makeImage(folder: string, env: Record<string, string>): Promise<void> {
  const root = join(folder, 'image')
  await mkdir(root)
  for (const top of ['bin', 'sbin', 'lib', 'lib64']) {
    const link = await readlink(`/${top}`).catch(() => undefined)
    if (link !== undefined) await symlink(link, join(root, top))
  }
  for (const name of PROGRAMS) {
    const path = ['/usr/bin', '/usr/sbin', '/bin', '/sbin'].map((each) => join(each, name)).find((each) => existsSync(each))
    if (path === undefined) throw new Error(`cannot make the test image: this machine has no '${name}'`)
    await add(root, path)
    const { stdout: libraries } = await run('ldd', [path]).catch(() => ({ stdout: '' }))
    for (const [, library = ''] of libraries.matchAll(/(\/\S+) \(0x/g)) await add(root, library)
  }
  const { stdout: modules } = await run('perl', ['-e', 'print join "\\n", grep { -d } @INC'], { env: { PATH: '/usr/bin:/bin' } })
  for (const each of modules.split('\n').filter((path) => path.startsWith('/usr/')))
    await cp(each, join(root, each), { recursive: true, dereference: true })
  await mkdir(join(root, 'etc'))
  await cp('/etc/passwd', join(root, 'etc/passwd'))
  await run('sh', ['-c', 'tar -C "$1" -c . | docker import - "$2"', 'sh', root, ENGINE_IMAGE], { env })
  await rm(root, { recursive: true })
}

/** Copies a file to its path in the image, resolving linked folders such as /bin. */
async function add(root: string, path: string): Promise<void> {
  const at = join(root, await realpath(dirname(path)), path.split('/').at(-1) ?? '')
  await mkdir(dirname(at), { recursive: true })
  await cp(path, at, { dereference: true })
}

async function end(child: ChildProcess, folder: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await Promise.race([exited, setTimeout(STOP_MS_MAX, undefined, { ref: false })])
    child.kill('SIGKILL')
  }
  // Remove control groups that containers left behind.
  for await (const group of glob('/sys/fs/cgroup/*/docker')) await run('rmdir', [group]).catch(() => undefined)
  await rm(folder, { recursive: true, force: true }).catch(() => undefined)
}
