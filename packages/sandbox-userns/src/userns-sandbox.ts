/** The `userns` backend: bubblewrap runs each command in its own namespaces and under a seccomp filter. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findProgram, hasProgram } from '@sluice/kit'
import {
  type ControlGroups,
  describeLimits,
  findControlGroups,
  launchedCommand,
  limitedCommand,
  removeAbandonedFolders,
  seccompFilter,
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
import { bwrapOptions } from './bwrap-options.ts'
import { type SystemView, systemView } from './system-view.ts'

const INSTALL = 'install bubblewrap, 0.8 or newer (apt-get install bubblewrap)'
const MISSING = `bwrap is not installed: ${INSTALL}`
const TRIAL = { file: '/bin/true', args: [], cwd: '/tmp', env: {} }

/** Returns the reason why this machine cannot use the backend, or undefined. */
export const missingRequirement = (): string | undefined =>
  process.platform !== 'linux' ? 'it needs Linux' : hasProgram('bwrap') ? undefined : MISSING

/** The files that bubblewrap reads for each command, in a folder of this process. */
interface Files extends SystemView {
  readonly folder: string
  readonly filter: string
}

/** The findings of the probe that each command uses. */
interface Ready extends Files {
  readonly program: string
  readonly groups: ControlGroups | undefined
}

/** Keeps its files until `close`. A process may build the backend while another one, such as the daemon, uses the same folder. */
export class UsernsSandbox implements Sandbox {
  readonly name = 'userns'
  readonly strength = 30
  readonly #folder: string
  readonly #hidden: string
  #ready: Ready | undefined
  /** Created once, since a later probe may run while commands use them. */
  #files: Promise<Files> | undefined

  /** `folder` holds the backend's files. No command sees `hidden`, except writable folders inside it. */
  constructor(folder: string, hidden: string) {
    this.#folder = folder
    this.#hidden = hidden
  }

  async probe(signal: AbortSignal, run: RunBare): Promise<SandboxProbe> {
    const program = await findProgram('bwrap')
    const missing = missingRequirement()
    if (missing !== undefined || program === undefined) return { available: false, detail: missing ?? MISSING }
    const filter = seccompFilter()
    if (!filter) return { available: false, detail: `the system calls of ${process.arch} are not known` }
    const { stdout } = await run({ file: program, args: ['--version'], cwd: '/', env: {} }, signal)
    const version = stdout.trim()
    this.#files ??= createFiles(this.#folder, this.#hidden, filter).catch((error: unknown) => {
      this.#files = undefined
      throw error
    })
    this.#ready = { program, groups: await findControlGroups(), ...(await this.#files) }
    const command = await this.wrap(TRIAL, { writable: [], network: false })
    const { exitCode, stderr } = await run(command, signal).finally(() => command.release?.(run))
    if (exitCode === 0)
      return { available: true, detail: [version, 'user namespaces, seccomp', describeLimits(this.#ready.groups)].join(', ') }
    const detail = `${version} fails: ${stderr.trim().split('\n')[0] || exitCode}; ${hint(stderr)}`
    return { available: false, isInstalled: true, detail }
  }

  async wrap(command: ProcessCommand, policy: SandboxPolicy): Promise<WrappedCommand> {
    if (!this.#ready) throw new AppError('unavailable', 'The userns sandbox was not probed on this machine')
    const { program, filter, groups } = this.#ready
    const { outside, inside } = splitEnv(command.env)
    const group = await groups?.create(policy)
    const { processesMax, ...limits } = group ? withoutGroupLimits(policy) : policy
    const inner = processesMax === undefined ? [command.file, ...command.args] : limitedCommand(command, { processesMax })
    const words = [program, '--seccomp', '9', ...bwrapOptions(command, policy, this.#ready, inside), '--', ...inner]
    const [file = '', ...args] = launchedCommand(words, { joinFiles: group?.joinFiles ?? [], descriptor9: filter, limits })
    return { file, args, cwd: '/', env: outside, ...(group && { release: () => group.remove() }) }
  }

  /** Removes the files. A later probe creates them again. */
  async close(): Promise<void> {
    const files = await this.#files?.catch(() => undefined)
    this.#ready = this.#files = undefined
    if (files !== undefined) await rm(files.folder, { recursive: true, force: true })
  }
}

async function createFiles(parent: string, hidden: string, filter: Uint8Array): Promise<Files> {
  await mkdir(parent, { recursive: true, mode: 0o700 })
  await removeAbandonedFolders(parent)
  const folder = await mkdtemp(join(parent, `${process.pid}-`))
  const file = join(folder, 'filter')
  await writeFile(file, filter)
  return { folder, filter: file, ...(await systemView(folder, hidden)) }
}

function hint(stderr: string): string {
  if (/unknown option/i.test(stderr)) return INSTALL
  if (/uid map|Operation not permitted|Permission denied|No permissions/i.test(stderr)) {
    return 'the kernel denies user namespaces: allow them (sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile for bwrap)'
  }
  return INSTALL
}
