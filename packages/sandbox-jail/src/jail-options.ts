/** The options of firejail for one command: no profile, so that what holds is what stands here. */
import { AppError, type ProcessCommand, type SandboxPolicy } from '@sluice/sdk'

/** What firejail takes in no path. */
const REFUSED_IN_PATHS = /[\\&!?"<>%^{};,*[\]\n]/
/** Folders of the root that hold programs, or that firejail replaces with a view of its own. */
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
/** Shown with all that is in them, unless a folder of the policy lies there too. */
const PROGRAMS = ['/usr/', '/opt/', '/nix/']
/**
 * Whitelisting any name makes firejail mount an empty folder over the folder it lies in, and show only whitelisted names there.
 * No file has this name, so whitelisting it hides everything.
 */
const NOTHING = '.sluice-shows-nothing'
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
  /** The home folder of this user, without links; `undefined` where there is none to hide. */
  readonly home: string | undefined
  readonly isRoot: boolean
  /** The file that /etc/resolv.conf is, without links. */
  readonly resolver: string | undefined
}

/** Throws `unavailable` for a folder firejail cannot name. `inside` is what of the environment firejail itself must not have. */
export function jailOptions(
  { cwd }: Pick<ProcessCommand, 'cwd'>,
  { writable, network, devices = [] }: Pick<SandboxPolicy, 'writable' | 'network' | 'devices'>,
  { root, etc, dataDir, home, isRoot, resolver }: View,
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
  // Firejail treats the home folder apart from the folder of the root that it lies in, so each is emptied.
  const above = home === undefined || PROGRAMS.some((folder) => home.startsWith(folder)) ? [] : [`/${home.split('/')[1]}`]
  const emptied = new Set(['/run', ...above, ...(home === undefined ? [] : [home]), ...(isRoot ? ['/home', '/root'] : [])])
  return [
    '--quiet',
    '--noprofile',
    '--deterministic-exit-code',
    '--deterministic-shutdown',
    '--private-tmp',
    ...(devices.length > 0 ? [...HARMLESS_DEVICES, ...devices].map((path) => `--whitelist=${path}`) : ['--private-dev']),
    '--private-cache',
    '--disable-mnt',
    ...etc.map((name) => `--whitelist=/etc/${name}`),
    ...writable.map((folder) => `--whitelist=${folder}`),
    ...[...emptied].map((folder) => `--whitelist=${folder}/${NOTHING}`),
    // /etc/resolv.conf is mostly a link to a file in /run.
    ...(network && resolver?.startsWith('/run/') ? [`--whitelist=${resolver}`] : []),
    devices.length > 0 ? '--read-only=/sys' : '--blacklist=/sys',
    // Firejail mounts /run/user/<uid> into the emptied /run, so it is hidden by itself.
    ...['/run/user', '/nix/var', '/proc/kcore', '/proc/keys', '/proc/sysrq-trigger', ...hidden, ...covered].map(
      (path) => `--blacklist=${path}`,
    ),
    ...['/', '/proc/sys', '/proc/irq', '/proc/bus'].map((path) => `--read-only=${path}`),
    // Root owns /run and firejail's own folder in it, which firejail itself has to write in. No other user may write there.
    ...(isRoot ? ['--read-only=/run', '--read-only=/run/firejail', '--read-write=/run/firejail/mnt'] : []),
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
