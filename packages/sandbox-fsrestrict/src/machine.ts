/** Numbers of system calls on each machine. */

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
  /** The calls that change the mode of a file, with the index of that argument. */
  readonly modes: readonly (readonly [number: number, argument: number])[]
  /** The calls for shared memory, semaphores and queues that are named by a key, not by a path. */
  readonly sharedByKey: readonly number[]
  /** The calls that change extended attributes. */
  readonly attributes: readonly number[]
  readonly truncate: number
  /** The calls that open a file, with the index of their flags. */
  readonly opens: readonly (readonly [number: number, argument: number])[]
}

/** setxattrat, removexattrat. */
const ATTRIBUTES_AT = [463, 466]

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
    // chmod, fchmod, fchmodat, fchmodat2
    modes: [
      [90, 1],
      [91, 1],
      [268, 2],
      [452, 2],
    ],
    // shmget to semctl, shmdt to msgctl, semtimedop, mq_open, mq_unlink
    sharedByKey: [29, 30, 31, 64, 65, 66, 67, 68, 69, 70, 71, 220, 240, 241],
    // setxattr, lsetxattr, fsetxattr, removexattr, lremovexattr, fremovexattr
    attributes: [188, 189, 190, 197, 198, 199, ...ATTRIBUTES_AT],
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
    modes: [
      [52, 1],
      [53, 2],
      [452, 2],
    ],
    sharedByKey: [180, 181, 186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196, 197],
    attributes: [5, 6, 7, 14, 15, 16, ...ATTRIBUTES_AT],
    truncate: 45,
    opens: [[56, 2]],
  },
}

/** Returns undefined for an architecture whose numbers are not known. */
export const machineOf = (arch: string): Machine | undefined => MACHINES[arch]
