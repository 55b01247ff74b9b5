/** Lists the system calls by which a launcher confines itself before it becomes the command. */
import type { SandboxPolicy } from '@sluice/sdk'
import { type CommandTag, TAG_RESOURCE } from './command-tag.ts'
import { landlockCalls, type ShownPath } from './landlock.ts'
import { CALLS, type Machine } from './machine.ts'

import { supplementaryFilter } from './supplementary-filter.ts'
import { packed, type SystemCall, text } from './system-calls.ts'

const AT_FDCWD = -100
const O_WRONLY_CLOEXEC = 0x80001

const LIMIT = { cpuSecs: 0, fileBytes: 1, core: 4, processes: 6, files: 7, memoryBytes: 9 } as const
const OPEN_FILES_MAX = 1024

const PR_SET_SECCOMP = 22
const PR_SET_SECUREBITS = 28
const PR_SET_NO_NEW_PRIVS = 38
const PR_CAP_AMBIENT = 47
const FILTER_MODE = 2
/** The same mode for the call `seccomp`. */
const FILTER_MODE_CALL = 1
const NEW_LISTENER = 8
const PR_SET_PDEATHSIG = 1
const SIGKILL = 9
const CLEAR_ALL = 4
/** User id 0 and changes of ids give no privileges, and none are kept or made ambient. All of these bits are locked. */
const SECURE_BITS = 0xef
const CAPABILITY_VERSION = 0x20080522

const FIRST_OTHER_FD = 3
const FDS_END = 0xffffffff
const CLOSE_ON_EXEC = 4

export interface Confinement {
  readonly machine: Machine
  readonly abi: number
  readonly shown: readonly ShownPath[]
  /** The seccomp filter of all backends. */
  readonly filter: Uint8Array
  /** The files through which the launcher joins its control groups. */
  readonly joinFiles: readonly string[]
  readonly isRoot: boolean
  /** Whether the launcher performs the calls that change attributes of files (`attribute-guard.ts`). */
  readonly isGuarded: boolean
  readonly tag: CommandTag
  /** Its `processesMax` limits all processes of the user together. */
  readonly policy: SandboxPolicy
}

/** Returns the calls in order: join groups, set limits, drop privileges, restrict files, close descriptors, install filters. */
export function confinementCalls(confinement: Confinement): readonly SystemCall[] {
  const { machine, abi, shown, filter, joinFiles, isRoot, isGuarded, tag, policy } = confinement
  const { memoryBytesMax, processesMax, fileBytesMax, cpuSecsMax, network, devices = [] } = policy
  const { prctl, seccomp } = machine
  const limit = (resource: number, most: number | undefined) =>
    most === undefined ? [] : [limitCall(machine, resource, most, most, 'may')]
  const start = [
    ...joinCalls(machine, joinFiles),
    limitCall(machine, TAG_RESOURCE, tag.soft, tag.hard, 'must'),
    ...limit(LIMIT.core, 0),
    ...limit(LIMIT.files, OPEN_FILES_MAX),
    ...limit(LIMIT.fileBytes, fileBytesMax),
    ...limit(LIMIT.cpuSecs, cpuSecsMax === undefined ? undefined : Math.ceil(cpuSecsMax)),
    ...limit(LIMIT.processes, processesMax),
    ...privilegeCalls(machine, isRoot),
  ]
  const supplementary = supplementaryFilter(machine, abi, { network, hasDevices: devices.length > 0, isGuarded })
  const install = (given: Uint8Array): SystemCall => ({
    name: 'seccomp',
    number: prctl,
    args: [PR_SET_SECCOMP, FILTER_MODE, { filter: given }],
  })
  return [
    ...start,
    ...landlockCalls(machine, abi, shown, policy, start.length),
    { name: 'close_range', number: CALLS.closeRange, args: [FIRST_OTHER_FD, FDS_END, CLOSE_ON_EXEC] },
    install(filter),
    ...(isGuarded
      ? [
          { name: 'pdeathsig', number: prctl, args: [PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0] },
          // The launcher passes the result of the call with this name to its other process.
          { name: 'listen', number: seccomp, args: [FILTER_MODE_CALL, NEW_LISTENER, { filter: supplementary }] },
        ]
      : [install(supplementary)]),
    // Set last, because the launcher itself may need more memory than the command may use.
    ...limit(LIMIT.memoryBytes, memoryBytesMax),
  ]
}

function joinCalls({ openat, write }: Machine, joinFiles: readonly string[]): readonly SystemCall[] {
  return joinFiles.flatMap((path, index): SystemCall[] => [
    { name: 'openat', number: openat, args: [AT_FDCWD, text(path), O_WRONLY_CLOEXEC] },
    { name: 'write', number: write, args: [{ result: 2 * index }, { bytes: Buffer.from('0') }, 1] },
  ])
}

/** With `may`, the call may fail, because a lower limit is already set. */
function limitCall({ prlimit64 }: Machine, resource: number, soft: number, hard: number, failing: 'may' | 'must'): SystemCall {
  return { name: 'prlimit64', number: prlimit64, args: [0, resource, { bytes: packed([64, soft], [64, hard]) }, 0], failing }
}

/** Returns the calls by which the launcher confines itself where it performs calls of the command. */
export const guardCalls = (machine: Machine, isRoot: boolean): readonly SystemCall[] => [
  limitCall(machine, LIMIT.core, 0, 0, 'may'),
  ...privilegeCalls(machine, isRoot),
]

function privilegeCalls({ prctl, capset }: Machine, isRoot: boolean): readonly SystemCall[] {
  return [
    // Only root may lock these bits. Other users have no id that gives privileges.
    { name: 'securebits', number: prctl, args: [PR_SET_SECUREBITS, SECURE_BITS, 0, 0, 0], failing: isRoot ? 'must' : 'may' },
    { name: 'ambient', number: prctl, args: [PR_CAP_AMBIENT, CLEAR_ALL, 0, 0, 0] },
    { name: 'capset', number: capset, args: [{ bytes: packed([32, CAPABILITY_VERSION], [32, 0]) }, { bytes: Buffer.alloc(24) }] },
    { name: 'no_new_privs', number: prctl, args: [PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0] },
  ]
}
