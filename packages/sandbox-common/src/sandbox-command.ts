/** The setup of a confined command: its environment, its limits and the start of the backend's program. */
import type { ProcessCommand, SandboxPolicy } from '@sluice/sdk'

const OPEN_FILES_MAX = 1024
/** The unit of `ulimit -f` in POSIX shells. */
const BLOCK_BYTES = 512

type Limits = Pick<SandboxPolicy, 'memoryBytesMax' | 'processesMax' | 'fileBytesMax' | 'cpuSecsMax'>

/** Variables that make a program load code or change its behavior at its start. Most of them are the variables that glibc ignores in set-id programs. */
const CHANGES_PROGRAMS =
  /^(?:LD_|DYLD_|GLIBC_|MALLOC_|GCONV_PATH|GETCONF_DIR|HOSTALIASES|LOCALDOMAIN|LOCPATH|NIS_PATH|NLSPATH|RESOLV_HOST_CONF|RES_OPTIONS|TMPDIR|TZDIR)/

/**
 * Splits an environment in two. The backend's program may have the variables of `outside`. Only the command gets the variables
 * of `inside`, because they would change the backend's program before it confines anything.
 */
export function splitEnv(env: ProcessCommand['env']): {
  readonly outside: Record<string, string>
  readonly inside: Record<string, string>
} {
  const entries = Object.entries(env)
  return {
    outside: Object.fromEntries(entries.filter(([name]) => !CHANGES_PROGRAMS.test(name))),
    inside: Object.fromEntries(entries.filter(([name]) => CHANGES_PROGRAMS.test(name))),
  }
}

/**
 * Returns the words that run a command under the limits of the policy, for use inside the sandbox: a shell sets the limits,
 * closes all descriptors except the three streams, and becomes the command. A lower limit that is already set stays.
 */
export const limitedCommand = ({ file, args }: Pick<ProcessCommand, 'file' | 'args'>, policy: Limits): readonly string[] => [
  '/bin/sh',
  '-c',
  `${limitScript(policy)}exec "$@"`,
  'sh',
  file,
  ...args,
]

const CLOSED = [3, 4, 5, 6, 7, 8, 9].map((fd) => `${fd}<&-`).join(' ')

function limitScript({ memoryBytesMax, processesMax, fileBytesMax, cpuSecsMax }: Limits): string {
  const limits = [
    'ulimit -c 0',
    `ulimit -n ${OPEN_FILES_MAX}`,
    memoryBytesMax !== undefined && `ulimit -v ${Math.ceil(memoryBytesMax / 1024)}`,
    fileBytesMax !== undefined && `ulimit -f ${Math.floor(fileBytesMax / BLOCK_BYTES)}`,
    cpuSecsMax !== undefined && `ulimit -t ${Math.ceil(cpuSecsMax)}`,
    // bash uses `-u` for the number of processes, dash uses `-p`.
    processesMax !== undefined && `{ ulimit -u ${processesMax} || ulimit -p ${processesMax}; }`,
  ].filter((limit) => limit !== false)
  return `{ ${limits.join('; ')}; } 2>/dev/null; exec ${CLOSED}; `
}

const JOIN_GROUPS = 'left=$2; ninth=$1; shift 2; while [ $left -gt 0 ]; do echo 0 >"$1" || exit 125; shift; left=$((left-1)); done; '
const OPEN_NINTH = '[ -z "$ninth" ] || exec 9<"$ninth" || exit 125; exec "$@"'

export interface LaunchOptions {
  /** The files through which a process joins its control groups. */
  readonly joinFiles?: readonly string[]
  /** A file to open as descriptor 9. */
  readonly descriptor9?: string
  /** Limits that already apply to the backend's program. The process limit is excluded, since it counts all processes of the user. */
  readonly limits?: Omit<Limits, 'processesMax'>
}

/** Returns the words that start the backend's program: a shell applies the options and becomes the program. */
export const launchedCommand = (
  words: readonly string[],
  { joinFiles = [], descriptor9 = '', limits }: LaunchOptions,
): readonly string[] =>
  joinFiles.length === 0 && descriptor9 === '' && limits === undefined
    ? words
    : [
        ...['/bin/sh', '-c', `${limits ? limitScript(limits) : ''}${JOIN_GROUPS}${OPEN_NINTH}`],
        ...['sh', descriptor9, String(joinFiles.length), ...joinFiles, ...words],
      ]

/** Returns the policy without the limits that a control group applies to all processes of the command together. */
export const withoutGroupLimits = ({ memoryBytesMax: _memory, processesMax: _processes, ...rest }: SandboxPolicy): SandboxPolicy => rest
