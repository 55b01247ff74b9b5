/**
 * Runs a script as root of a machine of its own: with its own network (loopback only), processes, and writable copies of the system's
 * folders. The script may install a service or listen on port 443, and nothing of it remains.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface SandboxOptions {
  /** An empty folder for the files of the sandbox, and the working directory of the script. */
  readonly folder: string
  /** The script, for `sh -eu`. */
  readonly script: string
  readonly env: Readonly<Record<string, string>>
  /** Folders with unpacked packages, whose files appear below `/`. */
  readonly packages: readonly string[]
  /** The parts of this machine that the script shares: nothing, its network, or everything, so that changes remain. */
  readonly shares: 'nothing' | 'network' | 'everything'
  /** The script is killed after this time. */
  readonly timeoutMs: number
}

export interface SandboxResult {
  /** The exit code; null if the script was killed. */
  readonly code: number | null
  /** Standard output and standard error, in the order of their lines. */
  readonly output: string
}

const SYSTEM_FOLDERS = ['etc', 'usr', 'var', 'opt', 'srv', 'home', 'root']
const OUTPUT_CHARS_MAX = 1_000_000

/** Runs the script to its end. Everything that it started ends with it, unless it shares everything. */
export async function runInSandbox(options: SandboxOptions): Promise<SandboxResult> {
  const { folder, script, env, packages, shares, timeoutMs } = options
  const layers = join(folder, '.layers')
  await mkdir(layers)
  const [stage, body] = [join(folder, '.stage.sh'), join(folder, '.script.sh')]
  const preparation = shares === 'everything' ? [] : stageLines(layers, packages, shares === 'network')
  await writeFile(stage, [...preparation, `cd '${folder}'`, `exec sh -eu '${body}'`, ''].join('\n'))
  await writeFile(body, script)
  const namespaces = { nothing: ['unshare', ...NAMESPACES, '--net'], network: ['unshare', ...NAMESPACES], everything: [] }[shares]
  const [program = 'sh', ...args] = [...namespaces, 'sh', '-eu', stage]
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-OUTPUT_CHARS_MAX)
    })
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
  const [code] = (await once(child, 'close')) as [number | null]
  clearTimeout(timer)
  return { code, output }
}

/** Root needs no namespace of users, and only root can change to other users inside. */
const NAMESPACES = ['--mount', '--pid', '--fork', '--kill-child', ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'])]

/** The commands that prepare the namespaces. Changes of the system's folders go to memory. */
function stageLines(layers: string, packages: readonly string[], sharesNetwork: boolean): string[] {
  const overlays = SYSTEM_FOLDERS.filter((name) => existsSync(`/${name}`)).map((name) => {
    const [upper, work] = [`'${layers}/${name}'`, `'${layers}/${name}.work'`]
    const lower = [...packages.map((root) => join(root, name)).filter((path) => existsSync(path)), `/${name}`].join(':')
    return `mkdir ${upper} ${work}; mount -t overlay overlay -o lowerdir='${lower}',upperdir=${upper},workdir=${work} /${name}`
  })
  return [
    'mount -t proc proc /proc',
    `mount -t tmpfs tmpfs '${layers}'`,
    ...overlays,
    // Name resolution may need files of /run.
    ...(sharesNetwork ? [] : ['ip link set lo up', 'mount -t tmpfs -o mode=755 tmpfs /run']),
  ]
}

/** Resolves to the reason why sandboxes do not work on this machine, or to undefined. */
export async function sandboxProblem(): Promise<string | undefined> {
  if (process.platform !== 'linux') return 'namespaces exist only on Linux'
  const probe = 'mkdir -p "$0" && mount -t tmpfs tmpfs "$0" && mkdir "$0/a" "$0/b" && ip link set lo up'
  const overlay = 'mount -t overlay overlay -o lowerdir=/etc,upperdir="$0/a",workdir="$0/b" /etc'
  try {
    await promisify(execFile)('unshare', [...NAMESPACES, '--net', 'sh', '-euc', `${probe} && ${overlay}`, '/mnt'])
    return undefined
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    return `namespaces with own mounts are not available: ${text.trim().split('\n').at(-1)}`
  }
}
