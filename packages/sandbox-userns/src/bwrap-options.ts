/** Builds the options of bubblewrap for one command. */
import type { ProcessCommand, SandboxPolicy } from '@sluice/sdk'
import type { SystemView } from './system-view.ts'

/** The size of each private folder. */
const PRIVATE_BYTES = 512 * 1024 * 1024

/** `inside` holds the variables that only the command gets, because they would change bubblewrap. */
export function bwrapOptions(
  { cwd }: Pick<ProcessCommand, 'cwd'>,
  { writable, readable = [], network, devices = [] }: Pick<SandboxPolicy, 'writable' | 'readable' | 'network' | 'devices'>,
  { system, names, hidden }: SystemView,
  inside: Readonly<Record<string, string>>,
): string[] {
  // A folder comes before the folders inside it, so that its mount does not hide theirs.
  const folders = [...new Set(writable)].sort((a, b) => a.length - b.length)
  const isShown = folders.some((folder) => cwd === folder || cwd.startsWith(folder === '/' ? '/' : `${folder}/`))
  const covered = hidden.filter((path) => !folders.some((folder) => `${path}/`.startsWith(folder === '/' ? '/' : `${folder}/`)))
  const privateFolder = (path: string) => ['--size', String(PRIVATE_BYTES), '--perms', '1777', '--tmpfs', path]
  return [
    '--unshare-user',
    '--disable-userns',
    '--unshare-ipc',
    '--unshare-pid',
    '--unshare-uts',
    '--unshare-cgroup-try',
    ...(network ? [] : ['--unshare-net']),
    '--hostname',
    'sandbox',
    '--cap-drop',
    'ALL',
    '--new-session',
    '--die-with-parent',
    ...system,
    ...covered.flatMap((path) => ['--tmpfs', path]),
    ...(network ? names : []),
    '--proc',
    '/proc',
    // Kernel settings in /proc belong to root, which could write them even without privileges.
    '--remount-ro',
    '/proc',
    '--dev',
    '/dev',
    ...privateFolder('/dev/shm'),
    ...devices.flatMap((path) => ['--dev-bind-try', path, path]),
    ...(devices.length > 0 ? ['--ro-bind', '/sys', '/sys'] : []),
    '--remount-ro',
    '/dev',
    ...privateFolder('/tmp'),
    '--symlink',
    '../tmp',
    '/var/tmp',
    '--dir',
    '/run',
    ...folders.flatMap((folder) => ['--bind', folder, folder]),
    ...readable.flatMap((folder) => ['--ro-bind', folder, folder]),
    ...(isShown ? [] : ['--dir', cwd]),
    ...[...covered, '/'].flatMap((path) => ['--remount-ro', path]),
    '--chdir',
    cwd,
    ...Object.entries(inside).flatMap(([name, value]) => ['--setenv', name, value]),
  ]
}
