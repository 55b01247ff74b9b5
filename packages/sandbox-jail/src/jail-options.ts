/** Builds the options of firejail for one command. No profile is loaded, so these options are the whole policy. */
import { AppError, type ProcessCommand, type SandboxPolicy } from '@sluice/sdk'

/** Characters that firejail refuses in paths. */
const REFUSED_IN_PATHS = /[\\&!?"<>%^{};,*[\]\n]/
/** Folders of the root that contain programs, or that firejail replaces with its own view. */
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
/** Folders that the command sees entirely, unless they contain a writable folder of the policy. */
const PROGRAMS = ['/usr/', '/opt/', '/nix/']
/**
 * Whitelisting a name makes firejail mount an empty folder over its parent folder and show only whitelisted names there. No
 * file has this name, so whitelisting it hides the whole content of the folder.
 */
const NOTHING = '.sluice-shows-nothing'
/** System calls to refuse in addition to firejail's own list, which contains mounts, modules, keys, tracing and more. */
const REFUSED_CALLS = [
  'bpf',
  'chroot',
  // With ENOSYS, libraries fall back to `clone`. With EPERM they fail.
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

/** The harmless devices of `--private-dev`, which replace it when a policy has devices. They exclude terminals and shared memory. */
const HARMLESS_DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'fd', 'stdin', 'stdout', 'stderr'].map((name) => `/dev/${name}`)

/** The facts about this machine from which the options are built. */
export interface View {
  /** Names in the root folder. */
  readonly root: readonly string[]
  /** Names of the public files and folders in /etc. */
  readonly etc: readonly string[]
  /** The data directory, without links. */
  readonly dataDir: string
  /** The home folder of this user, without links; undefined without a home folder to hide. */
  readonly home: string | undefined
  readonly isRoot: boolean
  /** The target of /etc/resolv.conf, without links. */
  readonly resolver: string | undefined
}

/**
 * Returns the options. `inside` holds the variables that only the command gets, because they would change firejail. Throws
 * `unavailable` for a path with a character that firejail refuses.
 */
export function jailOptions(
  { cwd }: Pick<ProcessCommand, 'cwd'>,
  { writable, readable = [], network, devices = [] }: Pick<SandboxPolicy, 'writable' | 'readable' | 'network' | 'devices'>,
  { root, etc, dataDir, home, isRoot, resolver }: View,
  inside: Readonly<Record<string, string>>,
): string[] {
  const isCovered =
    PROGRAMS.some((folder) => dataDir.startsWith(folder)) &&
    ![...writable, ...readable].some((folder) => `${folder}/`.startsWith(`${dataDir}/`))
  const covered = isCovered ? [dataDir] : []
  for (const path of [...writable, ...readable, ...devices, ...covered, cwd]) {
    if (REFUSED_IN_PATHS.test(path))
      throw new AppError('unavailable', `firejail cannot show '${path}': the path contains a character that firejail refuses`)
  }
  const isShown = writable.some((folder) => cwd === folder || cwd.startsWith(`${folder}/`))
  const used = new Set([...writable, ...readable].map((folder) => folder.split('/')[1]))
  const hidden = root.filter((name) => !SYSTEM.has(name) && !used.has(name) && name !== 'sys').map((name) => `/${name}`)
  // Firejail handles the home folder separately from its top-level folder, so both are emptied.
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
    ...[...writable, ...readable].map((folder) => `--whitelist=${folder}`),
    ...[...emptied].map((folder) => `--whitelist=${folder}/${NOTHING}`),
    // On most systems /etc/resolv.conf links to a file in /run.
    ...(network && resolver?.startsWith('/run/') ? [`--whitelist=${resolver}`] : []),
    devices.length > 0 ? '--read-only=/sys' : '--blacklist=/sys',
    // Firejail mounts /run/user/<uid> into the emptied /run, so it is hidden separately.
    ...['/run/user', '/nix/var', '/proc/kcore', '/proc/keys', '/proc/sysrq-trigger', ...hidden, ...covered].map(
      (path) => `--blacklist=${path}`,
    ),
    ...['/', '/proc/sys', '/proc/irq', '/proc/bus'].map((path) => `--read-only=${path}`),
    // Root owns /run and firejail's folder in it, to which firejail itself must write. Other users cannot write there anyway.
    ...(isRoot ? ['--read-only=/run', '--read-only=/run/firejail', '--read-write=/run/firejail/mnt'] : []),
    ...['/tmp', '/dev/shm', ...writable].map((path) => `--read-write=${path}`),
    ...readable.map((path) => `--read-only=${path}`),
    ...(network ? [] : ['--net=none']),
    '--protocol=unix,inet,inet6,netlink',
    '--hostname=sandbox',
    '--ipc-namespace',
    '--dbus-user=none',
    '--dbus-system=none',
    '--caps.drop=all',
    '--nonewprivs',
    // Access to a device usually depends on a group.
    ...(devices.length > 0 ? [] : ['--nogroups']),
    '--noroot',
    '--restrict-namespaces',
    `--seccomp=${REFUSED_CALLS.join(',')}`,
    `--private-cwd=${isShown ? cwd : '/tmp'}`,
    ...Object.entries(inside).map(([name, value]) => `--env=${name}=${value}`),
  ]
}
