/** The `fsrestrict` backend: each command under Landlock and two filters of system calls, and nothing else of the daemon (§2.7). */
import { realpath } from 'node:fs/promises'
import { type ControlGroups, findControlGroups, seccompFilter, withoutCounted } from '@sluice/sandbox-common'
import { AppError, type Clock, type Sandbox, type SandboxPolicy } from '@sluice/sdk'
import { askVersion } from './ask-version.ts'
import { createTag, endTagged } from './command-tag.ts'
import { confinementCalls } from './confinement.ts'
import { coverage } from './landlock.ts'
import { findLaunchers, type Launcher, launch } from './launchers.ts'
import { type Machine, machineOf } from './machine.ts'
import { countOwnTasks } from './own-tasks.ts'
import { createPrivateFolder, preparePrivateFolders, removeFolder } from './private-folder.ts'
import { type ShownPath, shownDevices, shownPaths } from './shown-paths.ts'

export interface FsrestrictOptions {
  /** Its own, for the temporary files of commands. */
  readonly folder: string
  /** Shown to no command, wherever it lies, but for what is writable in it. */
  readonly hidden: string
  readonly clock: Clock
  /** What may start commands, the first that works; found on this machine unless given. */
  launchers?(): Promise<readonly Launcher[]>
}

/** What the probe found, and each command uses. */
interface Ready {
  readonly machine: Machine
  readonly abi: number
  readonly launcher: Launcher
  readonly shown: readonly ShownPath[]
  readonly filter: Uint8Array
  readonly temporary: string
  readonly groups: ControlGroups | undefined
}

const TRIAL = { file: '/bin/true', args: [], cwd: '/', env: {} }

export function fsrestrict({ folder, hidden, clock, launchers = findLaunchers }: FsrestrictOptions): Sandbox {
  let ready: Ready | undefined
  const isRoot = process.getuid?.() === 0
  const sandbox: Sandbox = {
    name: 'fsrestrict',
    strength: 40,

    async probe(signal, run) {
      if (process.platform !== 'linux') return { available: false, detail: 'it needs Linux' }
      const machine = machineOf(process.arch)
      const filter = seccompFilter()
      if (!machine || !filter) return { available: false, detail: `its system calls are not known for ${process.arch}` }
      const asked = await askVersion(await launchers(), signal, run)
      if ('why' in asked) return { available: false, detail: asked.why }
      const [shown, temporary, groups] = await Promise.all([
        shownPaths(await realpath(hidden).catch(() => hidden)),
        preparePrivateFolders(folder),
        findControlGroups(),
      ])
      ready = { ...asked, machine, filter, shown, temporary, groups }
      const measured = `${coverage(asked.abi)}; seccomp; ${bounds(groups, isRoot)}; started by ${asked.launcher.name}`
      const command = await sandbox.wrap(TRIAL, { writable: [], network: false })
      const { exitCode, stderr } = await run(command, signal).finally(() => command.release?.(run))
      if (exitCode === 0) return { available: true, detail: measured }
      return {
        available: false,
        isInstalled: true,
        detail: `${measured}: ${stderr.trim().split('\n')[0] || `a command ended with ${exitCode}`}`,
      }
    },

    async wrap(command, policy) {
      if (!ready) throw new AppError('unavailable', 'fsrestrict has not been tried on this machine')
      const { launcher, groups, temporary, ...found } = ready
      const tag = createTag(clock)
      const group = isCounted(policy) ? await groups?.create(policy) : undefined
      const own = await createPrivateFolder(temporary).catch(async (error: unknown) => {
        await group?.remove()
        throw error
      })
      const limits = group ? withoutCounted(policy) : { ...policy, ...countedWithOthers(policy, isRoot) }
      const calls = confinementCalls({
        ...found,
        shown: [...found.shown, ...(await shownDevices(policy.devices ?? []))],
        joins: group?.joins ?? [],
        isRoot,
        tag,
        policy: { ...limits, writable: [...policy.writable, own] },
      })
      return {
        ...launch(launcher, calls, { ...command, env: { ...command.env, TMPDIR: own } }),
        async release() {
          await (group ? group.remove() : endTagged(tag, clock))
          await removeFolder(own)
        },
      }
    },
  }
  return sandbox
}

/** Bounded together, which control groups can; what is left of a command is ended without them. */
const isCounted = ({ memoryBytesMax, processesMax }: SandboxPolicy): boolean => memoryBytesMax !== undefined || processesMax !== undefined

/** The limit holds for all the user's processes together; the kernel does not hold root to it. */
function countedWithOthers({ processesMax }: SandboxPolicy, isRoot: boolean): Pick<SandboxPolicy, 'processesMax'> {
  return processesMax === undefined || isRoot ? {} : { processesMax: processesMax + countOwnTasks() }
}

function bounds(groups: ControlGroups | undefined, isRoot: boolean): string {
  if (groups) return 'processes and memory bounded by control groups'
  return isRoot ? 'processes not bounded: root may make no control groups here' : 'processes and memory of each bounded by limits'
}
