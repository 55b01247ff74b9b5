/** The options of firejail for one command: no profile, so that what holds is what stands here. */
import { AppError, type ProcessCommand, type SandboxPolicy } from '@sluice/sdk'

/** What firejail takes in no path. */
const REFUSED_IN_PATHS = /[\\&!?"<>%^{};,*[\]\n]/
/** Folders of the root that hold programs, or that firejail fills itself. */
const SYSTEM = new Set([
  'bin',
  'sbin',
  'lib',
  'lib32',
  'lib64',
  'libx32',
  'usr',
  'opt',
  'etc',
  'dev',
  'proc',
  'nix',
  'run',
  'tmp',
  'home',
  'root',
])
/** What is shown with all that is in it, unless a folder of the policy lies there too. */
const PROGRAMS = ['/usr/', '/opt/', '/nix/']
/** Above firejail's own list, which has the mount calls, modules, keys, tracing and more. */
const REFUSED_CALLS = [
  'bpf',
  'chroot',
  // what libraries fall back from, where a plain refusal would be the end
  'clone3:ENOSYS',
  'fanotify_init',
  'fsconfig',
  'fsmount',
  'fsopen',
  'fspick',
  'io_uring_enter',
  'io_uring_register',
  'io_uring_setup',
  'kcmp',
  'mount',
  'mount_setattr',
  'move_mount',
  'name_to_handle_at',
  'open_by_handle_at',
  'open_tree',
  'perf_event_open',
  'pidfd_getfd',
  'pivot_root',
  'process_vm_readv',
  'process_vm_writev',
  'ptrace',
  'setns',
  'sethostname',
  'syslog',
  'umount2',
  'userfaultfd',
  'vhangup',
]

/** Of those that firejail's own folder of devices has: not the terminals and shared memory of others. */
const HARMLESS_DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'fd', 'stdin', 'stdout', 'stderr'].map((name) => `/dev/${name}`)

export interface View {
  /** Names in the root folder. */
  readonly root: readonly string[]
  /** What there is in /etc of what everybody may know, by name. */
  readonly etc: readonly string[]
  /** The data directory, without links. */
  readonly dataDir: string
}

/** Throws `unavailable` for a folder firejail cannot name. `inside` is what of the environment firejail itself must not have. */
export function jailOptions(
  { cwd }: Pick<ProcessCommand, 'cwd'>,
  { writable, network, devices = [] }: Pick<SandboxPolicy, 'writable' | 'network' | 'devices'>,
  { root, etc, dataDir }: View,
  inside: Readonly<Record<string, string>>,
): string[] {
  const isCovered =
    PROGRAMS.some((folder) => dataDir.startsWith(folder)) && !writable.some((folder) => `${folder}/`.startsWith(`${dataDir}/`))
  const covered = isCovered ? [dataDir] : []
  for (const path of [...writable, ...devices, ...covered, cwd]) {
    if (REFUSED_IN_PATHS.test(path))
      throw new AppError('unavailable', `firejail cannot show '${path}': its name has a character it refuses`)
  }
  const isShown = writable.some((folder) => cwd === folder || cwd.startsWith(`${folder}/`))
  const used = new Set(writable.map((folder) => folder.split('/')[1]))
  const hidden = root.filter((name) => !SYSTEM.has(name) && !used.has(name) && name !== 'sys').map((name) => `/${name}`)
  return [
    '--quiet',
    '--noprofile',
    '--deterministic-exit-code',
    '--deterministic-shutdown',
    '--private',
    '--private-tmp',
    ...(devices.length > 0 ? [...HARMLESS_DEVICES, ...devices].map((path) => `--whitelist=${path}`) : ['--private-dev']),
    '--private-cache',
    '--disable-mnt',
    ...etc.map((name) => `--whitelist=/etc/${name}`),
    ...writable.map((folder) => `--whitelist=${folder}`),
    devices.length > 0 ? '--read-only=/sys' : '--blacklist=/sys',
    ...['/run/user', '/proc/kcore', '/proc/keys', '/proc/sysrq-trigger', ...hidden, ...covered].map((path) => `--blacklist=${path}`),
    ...['/', '/proc/sys', '/proc/irq', '/proc/bus'].map((path) => `--read-only=${path}`),
    ...['/tmp', '/dev/shm', ...writable].map((path) => `--read-write=${path}`),
    ...(network ? [] : ['--net=none']),
    '--protocol=unix,inet,inet6,netlink',
    '--hostname=sandbox',
    '--ipc-namespace',
    '--dbus-user=none',
    '--dbus-system=none',
    '--caps.drop=all',
    '--nonewprivs',
    // what may open a device is mostly a group
    ...(devices.length > 0 ? [] : ['--nogroups']),
    '--noroot',
    '--restrict-namespaces',
    `--seccomp=${REFUSED_CALLS.join(',')}`,
    `--private-cwd=${isShown ? cwd : '/tmp'}`,
    ...Object.entries(inside).map(([name, value]) => `--env=${name}=${value}`),
  ]
}
