/** Numbers of system calls on each machine. */
import type { AttributeCall } from './system-calls.ts'

/** The calls whose numbers are the same on all machines. */
export const CALLS = {
  landlockCreateRuleset: 444,
  landlockAddRule: 445,
  landlockRestrictSelf: 446,
  closeRange: 436,
} as const

/** The calls whose numbers differ, for the launcher and for the supplementary filter. */
export interface Machine {
  readonly openat: number
  readonly write: number
  readonly prctl: number
  readonly capset: number
  readonly prlimit64: number
  readonly socket: number
  readonly socketpair: number
  readonly setpriority: number
  readonly ioprioSet: number
  readonly kill: number
  readonly ioctl: number
  /** The older call to set a limit. */
  readonly setrlimit: number
  /** The calls that schedule a process; its id is the first argument. */
  readonly schedule: readonly number[]
  readonly clone: number
  readonly seccomp: number
  readonly fchmodat: number
  readonly fchownat: number
  readonly utimensat: number
  /** The flag with which opening a link fails or, with O_PATH, opens the link itself. */
  readonly openNoFollow: number
  /** The calls that change the mode, the owner or the times of a file. */
  readonly attributes: readonly AttributeCall[]
  /** The calls for shared memory, semaphores and queues that are named by a key, not by a path. */
  readonly sharedByKey: readonly number[]
  /** The calls that change extended attributes and flags. */
  readonly extended: readonly number[]
  readonly truncate: number
  /** The calls that open a file, with the index of their flags. */
  readonly opens: readonly (readonly [number: number, argument: number])[]
}

/** setxattrat, removexattrat, file_setattr. */
const EXTENDED_AT = [463, 466, 469]

/** The calls that name a folder and a path, or only an open file; all machines have them. */
const attributesAt = (fchmod: number, fchmodat: number, fchown: number, fchownat: number, utimensat: number): readonly AttributeCall[] => [
  { number: fchmod, changes: 'mode', folder: 0, value: 1 },
  { number: fchmodat, changes: 'mode', folder: 0, path: 1, value: 2 },
  // fchmodat2
  { number: 452, changes: 'mode', folder: 0, path: 1, value: 2, flags: 3 },
  { number: fchown, changes: 'owner', folder: 0, value: 1 },
  { number: fchownat, changes: 'owner', folder: 0, path: 1, value: 2, flags: 4 },
  { number: utimensat, changes: 'nanoseconds', folder: 0, path: 1, value: 2, flags: 3 },
]

const MACHINES: Partial<Record<string, Machine>> = {
  x64: {
    openat: 257,
    write: 1,
    prctl: 157,
    capset: 126,
    prlimit64: 302,
    socket: 41,
    socketpair: 53,
    setpriority: 141,
    ioprioSet: 251,
    kill: 62,
    ioctl: 16,
    setrlimit: 160,
    // sched_setaffinity, sched_setparam, sched_setscheduler, sched_setattr
    schedule: [203, 142, 144, 314],
    clone: 56,
    seccomp: 317,
    fchmodat: 268,
    fchownat: 260,
    utimensat: 280,
    openNoFollow: 0o400000,
    attributes: [
      ...attributesAt(91, 268, 93, 260, 280),
      // chmod, chown, lchown, utime, utimes, futimesat
      { number: 90, changes: 'mode', path: 0, value: 1 },
      { number: 92, changes: 'owner', path: 0, value: 1 },
      { number: 94, changes: 'owner', path: 0, value: 1, isOfLink: true },
      { number: 132, changes: 'seconds', path: 0, value: 1 },
      { number: 235, changes: 'microseconds', path: 0, value: 1 },
      { number: 261, changes: 'microseconds', folder: 0, path: 1, value: 2 },
    ],
    // shmget to semctl, shmdt to msgctl, semtimedop, mq_open, mq_unlink
    sharedByKey: [29, 30, 31, 64, 65, 66, 67, 68, 69, 70, 71, 220, 240, 241],
    // setxattr, lsetxattr, fsetxattr, removexattr, lremovexattr, fremovexattr
    extended: [188, 189, 190, 197, 198, 199, ...EXTENDED_AT],
    truncate: 76,
    // open, openat
    opens: [
      [2, 1],
      [257, 2],
    ],
  },
  arm64: {
    openat: 56,
    write: 64,
    prctl: 167,
    capset: 91,
    prlimit64: 261,
    socket: 198,
    socketpair: 199,
    setpriority: 140,
    ioprioSet: 30,
    kill: 129,
    ioctl: 29,
    setrlimit: 164,
    schedule: [122, 118, 119, 274],
    clone: 220,
    seccomp: 277,
    fchmodat: 53,
    fchownat: 54,
    utimensat: 88,
    openNoFollow: 0o100000,
    attributes: attributesAt(52, 53, 55, 54, 88),
    sharedByKey: [180, 181, 186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196, 197],
    extended: [5, 6, 7, 14, 15, 16, ...EXTENDED_AT],
    truncate: 45,
    opens: [[56, 2]],
  },
}

/** Returns undefined for an architecture whose numbers are not known. */
export const machineOf = (arch: string): Machine | undefined => MACHINES[arch]
