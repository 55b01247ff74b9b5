/** System calls as data: a list of them, made one after the other by a launcher just before it becomes the command. */

/** What a call is given: a number, bytes by their address, a filter program, or what earlier calls came to. */
export type Argument =
  | number
  | { readonly bytes: Uint8Array }
  /** Bytes, then the result of the call at this place of the list, as a 32-bit number. */
  | { readonly bytes: Uint8Array; readonly followedBy: number }
  | { readonly filter: Uint8Array }
  | { readonly result: number }

export interface SystemCall {
  /** What a failure is reported as. */
  readonly name: string
  readonly number: number
  readonly args: readonly Argument[]
  /** A failure ends the launcher, unless it `may` fail; `print` shows the result, or the error number below zero, instead. */
  readonly failing?: Failing
}

export type Failing = 'may' | 'must' | 'print'

const MARKS: Readonly<Record<Failing, string>> = { may: '?', must: '!', print: 'p' }

/** For both machines. */
export const CALLS = {
  landlockCreateRuleset: 444,
  landlockAddRule: 445,
  landlockRestrictSelf: 446,
  closeRange: 436,
} as const

/** What else the backend calls, and what its own filter speaks of, by machine. */
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
  /** Of `setrlimit`: the older way to set a limit. */
  readonly setrlimit: number
  /** Scheduling of a process by its id, the first argument. */
  readonly schedule: readonly number[]
  /** By number, which argument is the new mode of a file. */
  readonly modes: readonly (readonly [number: number, argument: number])[]
  /** Shared memory, semaphores and queues with names that no path leads to. */
  readonly sharedByKey: readonly number[]
  readonly attributes: readonly number[]
  /** By path, or on opening for reading. */
  readonly truncate: number
  /** By number, which argument has the flags. */
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
      ...([
        [90, 1],
        [91, 1],
        [268, 2],
        [452, 2],
      ] as const),
    ],
    // shmget to semctl, shmdt to msgctl, semtimedop, mq_open, mq_unlink
    sharedByKey: [29, 30, 31, 64, 65, 66, 67, 68, 69, 70, 71, 220, 240, 241],
    // setxattr, lsetxattr, fsetxattr, removexattr, lremovexattr, fremovexattr
    attributes: [188, 189, 190, 197, 198, 199, ...ATTRIBUTES_AT],
    truncate: 76,
    // open, openat
    opens: [
      ...([
        [2, 1],
        [257, 2],
      ] as const),
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
      ...([
        [52, 1],
        [53, 2],
        [452, 2],
      ] as const),
    ],
    sharedByKey: [180, 181, 186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196, 197],
    attributes: [5, 6, 7, 14, 15, 16, ...ATTRIBUTES_AT],
    truncate: 45,
    opens: [[56, 2]],
  },
}

/** `undefined` where the numbers are not known. */
export const machineOf = (arch: string): Machine | undefined => MACHINES[arch]

/** A path, or any other text, as the kernel takes it. */
export const text = (value: string): { readonly bytes: Uint8Array } => ({ bytes: Buffer.from(`${value}\0`) })

/** Words of 64 and 32 bits, in the order of both machines. */
export function packed(...words: readonly (readonly [bits: 32 | 64, value: number | bigint])[]): Uint8Array {
  const bytes = Buffer.alloc(words.reduce((total, [bits]) => total + bits / 8, 0))
  let at = 0
  for (const [bits, value] of words) {
    at = bits === 64 ? bytes.writeBigUInt64LE(BigInt(value), at) : bytes.writeUInt32LE(Number(value) >>> 0, at)
  }
  return bytes
}

/** The list in one word: a call a line, its parts between blanks. `launcher.ts` and `perl-launcher.ts` read it. */
export function encodeCalls(calls: readonly SystemCall[]): string {
  return calls.map(({ name, number, args, failing = 'must' }) => [MARKS[failing], name, number, ...args.map(encode)].join(' ')).join('\n')
}

function encode(argument: Argument): string {
  if (typeof argument === 'number') return String(argument)
  if ('result' in argument) return `r${argument.result}`
  if ('filter' in argument) return `f${hex(argument.filter)}`
  return 'followedBy' in argument ? `x${hex(argument.bytes)}r${argument.followedBy}` : `x${hex(argument.bytes)}`
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
