/** What backends that start a program of their own have in common: its environment, the limits inside. */
import type { ProcessCommand, SandboxPolicy } from '@sluice/sdk'

const OPEN_FILES_MAX = 1024
/** `ulimit -f` of POSIX shells counts in these. */
const BLOCK_BYTES = 512

/** What makes programs load or do something at their start, before they confine anything; `TMPDIR` and the like as glibc has it. */
const CHANGES_PROGRAMS =
  /^(?:LD_|DYLD_|GLIBC_|MALLOC_|GCONV_PATH|GETCONF_DIR|HOSTALIASES|LOCALDOMAIN|LOCPATH|NIS_PATH|NLSPATH|RESOLV_HOST_CONF|RES_OPTIONS|TMPDIR|TZDIR)/

/**
 * The given environment in two: what the backend's own program may have too, and what is only for the command inside it,
 * since it would change that program.
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
 * The words that run a command under the policy's limits, for use inside the sandbox: a shell sets them, closes what it
 * was handed besides the three streams, and becomes the command. A limit that is lower already stays so.
 */
export const limitedWords = ({ file, args }: Pick<ProcessCommand, 'file' | 'args'>, policy: Limits): readonly string[] => [
  '/bin/sh',
  '-c',
  `${limitLines(policy)}exec "$@"`,
  'sh',
  file,
  ...args,
]

type Limits = Pick<SandboxPolicy, 'memoryBytesMax' | 'processesMax' | 'fileBytesMax' | 'cpuSecsMax'>

const CLOSED = [3, 4, 5, 6, 7, 8, 9].map((fd) => `${fd}<&-`).join(' ')

function limitLines({ memoryBytesMax, processesMax, fileBytesMax, cpuSecsMax }: Limits): string {
  const limits = [
    'ulimit -c 0',
    `ulimit -n ${OPEN_FILES_MAX}`,
    memoryBytesMax !== undefined && `ulimit -v ${Math.ceil(memoryBytesMax / 1024)}`,
    fileBytesMax !== undefined && `ulimit -f ${Math.floor(fileBytesMax / BLOCK_BYTES)}`,
    cpuSecsMax !== undefined && `ulimit -t ${Math.ceil(cpuSecsMax)}`,
    // bash and dash have different letters for it
    processesMax !== undefined && `{ ulimit -u ${processesMax} || ulimit -p ${processesMax}; }`,
  ].filter((limit) => limit !== false)
  return `{ ${limits.join('; ')}; } 2>/dev/null; exec ${CLOSED}; `
}

const JOIN = 'left=$2; ninth=$1; shift 2; while [ $left -gt 0 ]; do echo 0 >"$1" || exit 125; shift; left=$((left-1)); done; '
const OPEN = '[ -z "$ninth" ] || exec 9<"$ninth" || exit 125; exec "$@"'

export interface StartOptions {
  /** Files a process joins its control groups by. */
  readonly joins?: readonly string[]
  /** A file to be open as descriptor 9. */
  readonly ninth?: string
  /** What holds for the backend's program already; the number of processes can not be among it, which counts all of a user's. */
  readonly limits?: Omit<Limits, 'processesMax'>
}

/** The words that start the backend's program: a shell prepares itself and becomes it. */
export const startWords = (words: readonly string[], { joins = [], ninth = '', limits }: StartOptions): readonly string[] =>
  joins.length === 0 && ninth === '' && limits === undefined
    ? words
    : ['/bin/sh', '-c', `${limits ? limitLines(limits) : ''}${JOIN}${OPEN}`, 'sh', ninth, String(joins.length), ...joins, ...words]

/** What a control group bounds for all processes together need not be bounded for each. */
export const withoutCounted = ({ memoryBytesMax: _memory, processesMax: _processes, ...rest }: SandboxPolicy): SandboxPolicy => rest

/** Where programs and their libraries are, on Linux. */
export const PROGRAM_FOLDERS: readonly string[] = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix/store']

/** What of /etc programs need and is no secret. */
export const PUBLIC_ETC: readonly string[] = [
  'alternatives',
  'bash.bashrc',
  'ca-certificates',
  'ca-certificates.conf',
  'chromium',
  'chromium.d',
  'crypto-policies',
  'debian_version',
  'fonts',
  'gai.conf',
  'group',
  'host.conf',
  'hosts',
  'inputrc',
  'java',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'locale.alias',
  'locale.conf',
  'localtime',
  'magic',
  'mime.types',
  'nsswitch.conf',
  'os-release',
  'passwd',
  'perl',
  'pki/ca-trust',
  'pki/java',
  'pki/tls/cert.pem',
  'pki/tls/certs',
  'pki/tls/openssl.cnf',
  'pki/tls/openssl.d',
  'pki/trust',
  'profile',
  'protocols',
  'resolv.conf',
  'services',
  'shells',
  'ssl/certs',
  'ssl/openssl.cnf',
  'terminfo',
  'timezone',
]
