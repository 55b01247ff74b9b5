/** The `userns` backend: each command in namespaces of its own, made by bubblewrap, under a filter of system calls (§2.7). */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findProgram, hasProgram } from '@sluice/kit'
import {
  type ControlGroups,
  findControlGroups,
  limitedWords,
  seccompFilter,
  splitEnv,
  startWords,
  withoutCounted,
} from '@sluice/sandbox-common'
import { AppError, type Sandbox, type SandboxProbe } from '@sluice/sdk'
import { bwrapOptions } from './bwrap-options.ts'
import { ownFolder } from './own-folder.ts'
import { type SystemView, systemView } from './system-view.ts'

const INSTALL = 'install bubblewrap, 0.8 or newer (apt-get install bubblewrap)'

const MISSING = `bwrap is not installed: ${INSTALL}`

export const missingRequirement = (): string | undefined =>
  process.platform !== 'linux' ? 'it needs Linux' : hasProgram('bwrap') ? undefined : MISSING

/** What the probe found, and each command uses. */
interface Ready extends Files {
  readonly program: string
  readonly groups: ControlGroups | undefined
}

/** Made once: a probe may come while commands of an earlier one run. */
interface Files extends SystemView {
  readonly folder: string
  readonly filter: string
}

const TRIAL = { file: '/bin/true', args: [], cwd: '/tmp', env: {} }

export interface UsernsOptions {
  /** Where it keeps what bubblewrap is given: the filter and what commands see of /etc. */
  readonly folder: string
  /** Shown to no command, wherever it lies, but for what is writable in it. */
  readonly hidden: string
}

export function userns({ folder, hidden }: UsernsOptions): { readonly sandbox: Sandbox; close(): Promise<void> } {
  let ready: Ready | undefined
  let files: Promise<Files> | undefined
  const close = async () => {
    const own = await files?.catch(() => undefined)
    ready = files = undefined
    if (own !== undefined) await rm(own.folder, { recursive: true, force: true })
  }
  const sandbox: Sandbox = {
    name: 'userns',
    strength: 30,

    async probe(signal, run): Promise<SandboxProbe> {
      const program = await findProgram('bwrap')
      const missing = missingRequirement()
      if (missing !== undefined || program === undefined) return { available: false, detail: missing ?? MISSING }
      const filter = seccompFilter()
      if (!filter) return { available: false, detail: `there is no filter of system calls for ${process.arch}` }
      const { stdout: version } = await run({ file: program, args: ['--version'], cwd: '/', env: {} }, signal)
      files ??= makeFiles(folder, hidden, filter).catch((error: unknown) => {
        files = undefined
        throw error
      })
      ready = { program, groups: await findControlGroups(), ...(await files) }
      const command = await sandbox.wrap(TRIAL, { writable: [], network: false })
      const { exitCode, stderr } = await run(command, signal).finally(() => command.release?.(run))
      if (exitCode === 0) return { available: true, detail: [version.trim(), 'user namespaces, seccomp', bounds(ready)].join(', ') }
      const detail = `${version.trim()} fails: ${stderr.trim().split('\n')[0] || exitCode}; ${hint(stderr)}`
      return { available: false, isInstalled: true, detail }
    },

    async wrap(command, policy) {
      if (!ready) throw new AppError('unavailable', 'userns has not been tried on this machine')
      const { program, filter, groups } = ready
      const { outside, inside } = splitEnv(command.env)
      const group = await groups?.create(policy)
      const { processesMax, ...limits } = group ? withoutCounted(policy) : policy
      const inner = processesMax === undefined ? [command.file, ...command.args] : limitedWords(command, { processesMax })
      const words = [program, '--seccomp', '9', ...bwrapOptions(command, policy, ready, inside), '--', ...inner]
      const [file = '', ...args] = startWords(words, { joins: group?.joins ?? [], ninth: filter, limits })
      return {
        file,
        args,
        cwd: '/',
        env: outside,
        ...(group && { release: () => group.remove() }),
      }
    },
  }
  return { sandbox, close }
}

async function makeFiles(folder: string, hidden: string, filter: Uint8Array): Promise<Files> {
  const own = await ownFolder(folder)
  const file = join(own, 'filter')
  await writeFile(file, filter)
  return { folder: own, filter: file, ...(await systemView(own, hidden)) }
}

function bounds({ groups }: Ready): string {
  if (groups) return 'processes and memory bounded by control groups'
  const isRoot = process.getuid?.() === 0
  return isRoot ? 'processes not bounded: root may make no control groups here' : 'processes and memory of each bounded by limits'
}

function hint(stderr: string): string {
  if (/unknown option/i.test(stderr)) return INSTALL
  if (/uid map|Operation not permitted|Permission denied|No permissions/i.test(stderr)) {
    return 'the kernel denies user namespaces: allow them (sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile for bwrap)'
  }
  return INSTALL
}
