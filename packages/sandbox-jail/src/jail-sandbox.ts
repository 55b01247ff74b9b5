/** The `jail` backend: runs each command in firejail. */
import { access, readdir, realpath, stat } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { findProgram, hasProgram } from '@sluice/kit'
import {
  type ControlGroups,
  describeLimits,
  findControlGroups,
  launchedCommand,
  limitedCommand,
  PUBLIC_ETC,
  splitEnv,
  withoutGroupLimits,
} from '@sluice/sandbox-common'
import {
  AppError,
  type ProcessCommand,
  type RunBare,
  type Sandbox,
  type SandboxPolicy,
  type SandboxProbe,
  type WrappedCommand,
} from '@sluice/sdk'
import { jailOptions, type View } from './jail-options.ts'

const INSTALL = 'install firejail, 0.9.72 or newer (apt-get install firejail)'
const MISSING = `firejail is not installed: ${INSTALL}`
const REQUIREMENT = 'it must be 0.9.72 or newer, and this user must be allowed to use it (/etc/firejail/firejail.users)'
const TRIAL = { file: '/bin/true', args: [], cwd: '/tmp', env: {} }

/** The findings of the probe that each command uses. The resolver's file may change later. */
interface Ready {
  readonly program: string
  readonly groups: ControlGroups | undefined
  readonly view: Omit<View, 'resolver'>
}

/** Returns the reason why this machine cannot use the backend, or undefined. */
export const missingRequirement = (): string | undefined =>
  process.platform !== 'linux' ? 'it needs Linux' : hasProgram('firejail') ? undefined : MISSING

export class JailSandbox implements Sandbox {
  readonly name = 'jail'
  readonly strength = 20
  readonly #dataDir: string
  #ready: Ready | undefined

  /** No command sees the data directory, except writable folders inside it. */
  constructor(dataDir: string) {
    this.#dataDir = dataDir
  }

  async probe(signal: AbortSignal, run: RunBare): Promise<SandboxProbe> {
    const program = await findProgram('firejail')
    const missing = missingRequirement()
    if (missing !== undefined || program === undefined) return { available: false, detail: missing ?? MISSING }
    const { stdout } = await run({ file: program, args: ['--version'], cwd: '/', env: {} }, signal)
    const version = stdout.split('\n')[0] || 'firejail'
    const [root, etc, groups, home] = await Promise.all([readdir('/'), publicEtc(), findControlGroups(), ownHome()])
    const isRoot = process.getuid?.() === 0
    const dataDir = await realpath(this.#dataDir).catch(() => this.#dataDir)
    this.#ready = { program, groups, view: { root, etc, home, isRoot, dataDir } }
    const command = await this.wrap(TRIAL, { writable: [], network: false })
    const { exitCode, stderr } = await run(command, signal).finally(() => command.release?.(run))
    if (exitCode !== 0) {
      const detail = `${version} fails: ${stderr.trim().split('\n')[0] || exitCode}; ${REQUIREMENT}`
      return { available: false, isInstalled: true, detail }
    }
    return { available: true, detail: `${version}, ${describeLimits(groups)}` }
  }

  async wrap(command: ProcessCommand, policy: SandboxPolicy): Promise<WrappedCommand> {
    if (!this.#ready) throw new AppError('unavailable', 'The jail sandbox was not probed on this machine')
    const { program, groups, view } = this.#ready
    const { outside, inside } = splitEnv(command.env)
    const resolver = await realpath('/etc/resolv.conf').catch(() => undefined)
    const options = jailOptions(command, policy, { ...view, resolver }, inside)
    const group = await groups?.create(policy)
    const inner = limitedCommand(command, group ? withoutGroupLimits(policy) : policy)
    const [file = '', ...args] = launchedCommand([program, ...options, '--', ...inner], { joinFiles: group?.joinFiles ?? [] })
    return { file, args, cwd: '/', env: outside, ...(group && { release: () => group.remove() }) }
  }
}

/** Returns the home folder that firejail finds for this user, which may differ from `HOME`, or undefined if another user owns it. */
async function ownHome(): Promise<string | undefined> {
  try {
    const home = await realpath(userInfo().homedir)
    return home !== '/' && (await stat(home)).uid === process.getuid?.() ? home : undefined
  } catch {
    return undefined
  }
}

/** Returns the names of PUBLIC_ETC that exist on this machine. */
async function publicEtc(): Promise<string[]> {
  const found = await Promise.all(
    PUBLIC_ETC.map((name) =>
      access(join('/etc', name)).then(
        () => [name],
        () => [],
      ),
    ),
  )
  return found.flat()
}
