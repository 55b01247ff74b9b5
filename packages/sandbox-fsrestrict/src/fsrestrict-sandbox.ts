/** The `fsrestrict` backend: runs each command under Landlock and two seccomp filters. The daemon itself is never restricted. */
import { randomUUID } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { mkdir, realpath, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type ControlGroup,
  type ControlGroups,
  describeLimits,
  findControlGroups,
  removeAbandonedFolders,
  seccompFilter,
  withoutGroupLimits,
} from '@sluice/sandbox-common'
import {
  AppError,
  type Clock,
  type ProcessCommand,
  type RunBare,
  type Sandbox,
  type SandboxPolicy,
  type SandboxProbe,
  type WrappedCommand,
} from '@sluice/sdk'
import { createTag, endTagged } from './command-tag.ts'
import { confinementCalls, guardCalls } from './confinement.ts'
import { coverage, EXECUTABLE, type ShownPath } from './landlock.ts'
import { findLandlock } from './landlock-version.ts'
import { findLaunchers, type Launcher, launch } from './launchers.ts'
import { type Machine, machineOf } from './machine.ts'
import { shownDevices, shownPaths } from './shown-paths.ts'

const TRIAL = { file: '/bin/true', args: [], cwd: '/', env: {} }
/** Changes the mode and the times of a file of its own, which must work, and of the folder in its argument, which must have no effect. */
const GUARD_TRIAL = `
: >"$TMPDIR/own" && chmod 700 "$TMPDIR/own" && touch -t 200001010000 "$TMPDIR/own" || exit 1
chmod 777 "$1" 2>/dev/null
touch -t 200001010000 "$1" 2>/dev/null
exit 0`
/** Besides one link for each thread, the folder `/proc/<pid>/task` has one for itself and one for its parent. */
const TASK_FOLDER_LINKS = 2

export interface FsrestrictOptions {
  /** The folder for the temporary files of commands, which belongs to the backend. */
  readonly folder: string
  /** The folder that no command sees, except writable folders inside it. */
  readonly hidden: string
  readonly clock: Clock
  /** Returns the launchers to try in order. The default is `findLaunchers`. */
  launchers?(): Promise<readonly Launcher[]>
}

/** The findings of the probe that each command uses. */
interface Ready {
  readonly machine: Machine
  readonly abi: number
  readonly launcher: Launcher
  /** Whether the launcher performs the calls that change attributes of files. */
  readonly isGuarded: boolean
  readonly shown: readonly ShownPath[]
  readonly filter: Uint8Array
  /** The parent of all temporary folders, without links. */
  readonly temporary: string
  readonly groups: ControlGroups | undefined
}

export class FsrestrictSandbox implements Sandbox {
  readonly name = 'fsrestrict'
  readonly strength = 40
  readonly #folder: string
  readonly #hidden: string
  readonly #clock: Clock
  readonly #launchers: () => Promise<readonly Launcher[]>
  readonly #isRoot = process.getuid?.() === 0
  #ready: Ready | undefined

  constructor({ folder, hidden, clock, launchers = findLaunchers }: FsrestrictOptions) {
    this.#folder = folder
    this.#hidden = hidden
    this.#clock = clock
    this.#launchers = launchers
  }

  async probe(signal: AbortSignal, run: RunBare): Promise<SandboxProbe> {
    if (process.platform !== 'linux') return { available: false, detail: 'it needs Linux' }
    const machine = machineOf(process.arch)
    const filter = seccompFilter()
    if (!machine || !filter) return { available: false, detail: `the system calls of ${process.arch} are not known` }
    const landlock = await findLandlock(await this.#launchers(), signal, run)
    if ('missing' in landlock) return { available: false, detail: landlock.missing }
    const [shown, temporary, groups] = await Promise.all([
      shownPaths(await realpath(this.#hidden).catch(() => this.#hidden)),
      prepareTemporaryFolders(this.#folder),
      findControlGroups(),
    ])
    const ready = { ...landlock, machine, filter, shown, temporary, groups }
    let fault: string | undefined
    // The guard counts only when a command has met it. Another filter of this process that already listens, such as that of a container
    // engine, rules it out.
    for (const isGuarded of landlock.launcher.canGuard ? [true, false] : [false]) {
      this.#ready = { ...ready, isGuarded }
      fault = await this.#try(signal, run)
      if (fault === undefined) break
    }
    const guard = this.#ready?.isGuarded ? '' : '; modes of files outside are not protected'
    const detail = `${coverage(landlock.abi)}; seccomp${guard}; ${describeLimits(groups)}; started by ${landlock.launcher.name}`
    return fault === undefined ? { available: true, detail } : { available: false, isInstalled: true, detail: `${detail}: ${fault}` }
  }

  /** Runs a command. Returns what went wrong, if anything. */
  async #try(signal: AbortSignal, run: RunBare): Promise<string | undefined> {
    return this.#ready?.isGuarded ? this.#tryGuard(this.#ready, signal, run) : this.#tryCommand(TRIAL, signal, run)
  }

  async #tryGuard({ temporary }: Ready, signal: AbortSignal, run: RunBare): Promise<string | undefined> {
    const outside = await createTemporaryFolder(temporary)
    try {
      const before = await stat(outside)
      const command = { ...TRIAL, file: '/bin/sh', args: ['-c', GUARD_TRIAL, 'sh', outside], env: { PATH: '/usr/bin:/bin' } }
      const fault = await this.#tryCommand(command, signal, run)
      const { mode, mtimeMs } = await stat(outside)
      return (
        fault ??
        (mode === before.mode && mtimeMs === before.mtimeMs ? undefined : 'a command changed the mode or the times of a file outside')
      )
    } finally {
      await rm(outside, { recursive: true, force: true })
    }
  }

  async #tryCommand(trial: ProcessCommand, signal: AbortSignal, run: RunBare): Promise<string | undefined> {
    const command = await this.wrap(trial, { writable: [], network: false })
    const { exitCode, stderr } = await run(command, signal).finally(() => command.release?.(run))
    return exitCode === 0 ? undefined : stderr.trim().split('\n')[0] || `a command ended with ${exitCode}`
  }

  async wrap(command: ProcessCommand, policy: SandboxPolicy): Promise<WrappedCommand> {
    if (!this.#ready) throw new AppError('unavailable', 'The fsrestrict sandbox was not probed on this machine')
    const { launcher, groups, temporary, ...found } = this.#ready
    const { machine, isGuarded } = found
    const tag = createTag(this.#clock)
    const group = hasGroupLimits(policy) ? await groups?.create(policy) : undefined
    const own = await createTemporaryFolder(temporary).catch(async (error: unknown) => {
      await group?.remove()
      throw error
    })
    const writable = [...policy.writable, own]
    const calls = confinementCalls({
      ...found,
      shown: [...found.shown, ...readableFolders(policy), ...(await shownDevices(policy.devices ?? []))],
      joinFiles: group?.joinFiles ?? [],
      isRoot: this.#isRoot,
      tag,
      policy: { ...this.#processLimits(policy, group, isGuarded), writable },
    })
    const guard = isGuarded ? { machine, writable, privileges: guardCalls(machine, this.#isRoot) } : undefined
    return {
      ...launch(launcher, calls, { ...command, env: { ...command.env, TMPDIR: own } }, guard),
      release: async () => {
        await (group ? group.remove() : endTagged(tag, this.#clock))
        await rm(own, { recursive: true, force: true })
      },
    }
  }

  /**
   * Returns the policy with the limits that each process must set itself. The kernel applies a process limit to all processes
   * of a user together, so the present ones are added, and the launcher if it stays. It does not apply this limit to root.
   */
  #processLimits(policy: SandboxPolicy, group: ControlGroup | undefined, isGuarded: boolean): SandboxPolicy {
    if (group) return withoutGroupLimits(policy)
    const { processesMax } = policy
    return processesMax === undefined || this.#isRoot
      ? policy
      : { ...policy, processesMax: processesMax + countOwnTasks() + (isGuarded ? 1 : 0) }
  }
}

const readableFolders = ({ readable = [] }: SandboxPolicy): ShownPath[] =>
  readable.map((path) => ({ path, rights: EXECUTABLE, isFolder: true }))

/** True if the policy has limits that apply to all processes of a command together, for which it needs a control group. */
const hasGroupLimits = ({ memoryBytesMax, processesMax }: SandboxPolicy): boolean =>
  memoryBytesMax !== undefined || processesMax !== undefined

/** Returns the number of processes and threads of this user. */
function countOwnTasks(): number {
  const uid = process.getuid?.()
  const threadsOf = (pid: string) => {
    const tasks = statSync(`/proc/${pid}/task`, { throwIfNoEntry: false })
    return tasks && tasks.uid === uid ? tasks.nlink - TASK_FOLDER_LINKS : 0
  }
  return readdirSync('/proc').reduce((total, name) => total + (/^\d+$/.test(name) ? threadsOf(name) : 0), 0)
}

/** Creates the parent of the temporary folders, readable only by this user, and removes the folders of daemons that were killed. */
async function prepareTemporaryFolders(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await removeAbandonedFolders(folder)
  return realpath(folder)
}

/** Creates a temporary folder for one command, since Landlock can hide /tmp but cannot replace it. */
async function createTemporaryFolder(parent: string): Promise<string> {
  const path = join(parent, `${process.pid}-${randomUUID()}`)
  await mkdir(path, { mode: 0o700 })
  return path
}
