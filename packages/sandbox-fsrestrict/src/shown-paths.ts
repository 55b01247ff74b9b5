/** The paths that a confined command sees: programs, libraries, public files of /etc, harmless devices and kernel facts. */
import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { PROGRAM_FOLDERS, PUBLIC_ETC } from '@sluice/sandbox-common'
import { CONTROLLABLE, EXECUTABLE, READABLE, type ShownPath, USABLE } from './landlock.ts'

/** Files on which some programs fail if they exist but are not readable. */
const MORE_ETC = ['gitconfig', 'hostname', 'login.defs']

/** Of /proc/self only the named files, because the whole folder would show the sockets and connections of the machine. */
const OWN_FOLDER = '/proc/self'
const OWN = ['status', 'stat', 'cmdline', 'maps', 'fd', 'cgroup']

const FACTS = [
  ...['cpuinfo', 'meminfo', 'stat', 'uptime', 'loadavg', 'version', 'filesystems'].map((name) => join('/proc', name)),
  ...['kernel/cap_last_cap', 'kernel/random', 'vm/overcommit_memory'].map((name) => join('/proc/sys', name)),
  ...OWN.map((name) => join(OWN_FOLDER, name)),
  '/sys/devices/system/cpu',
]

/** Devices that store nothing, and sources of randomness. */
const SINKS = ['/dev/null', '/dev/zero', '/dev/full']
const SOURCES = ['/dev/random', '/dev/urandom']

/** Returns the existing devices of a policy and, if it has any, /sys, where the kernel describes them. */
export async function shownDevices(devices: readonly string[]): Promise<readonly ShownPath[]> {
  const wanted = [...devices.map((path) => [path, CONTROLLABLE] as const), ...(devices.length > 0 ? [['/sys', READABLE] as const] : [])]
  const shown = wanted.map(async ([path, rights]) => {
    const found = await stat(path).catch(() => undefined)
    return found ? [{ path, rights, isFolder: found.isDirectory() }] : []
  })
  return (await Promise.all(shown)).flat()
}

/**
 * Returns the existing paths with links resolved, without paths that a parent with the same rights covers. A folder that
 * contains `hidden`, which must be a path without links, is replaced by its other entries.
 */
export async function shownPaths(hidden: string): Promise<readonly ShownPath[]> {
  const etc = [...PUBLIC_ETC, ...MORE_ETC].map((name) => join('/etc', name))
  const wanted = [
    ...(await Promise.all(PROGRAM_FOLDERS.map((path) => beside(hidden, path)))).flat().map((path) => [path, EXECUTABLE] as const),
    ...[...etc, ...FACTS, ...SOURCES].map((path) => [path, READABLE] as const),
    ...SINKS.map((path) => [path, USABLE] as const),
  ]
  const shown: ShownPath[] = []
  for (const [path, rights] of wanted) {
    const real = path.startsWith(OWN_FOLDER) ? path : await realpath(path).catch(() => undefined)
    const isGiven = shown.some((other) => real === other.path || (real?.startsWith(`${other.path}/`) && (rights & ~other.rights) === 0))
    if (real !== undefined && !isGiven) shown.push({ path: real, rights, isFolder: (await stat(real)).isDirectory() })
  }
  return shown
}

/** Returns `path` if it does not contain `hidden`, otherwise the entries below it except `hidden`. A rule of Landlock always includes its whole folder. */
async function beside(hidden: string, path: string): Promise<string[]> {
  const real = await realpath(path).catch(() => undefined)
  if (real === undefined || real === hidden || real.startsWith(`${hidden}/`)) return []
  if (!hidden.startsWith(`${real}/`)) return [real]
  // The target of a link is shown only if it is in the list itself.
  const entries = (await readdir(real, { withFileTypes: true })).filter((entry) => !entry.isSymbolicLink())
  return (await Promise.all(entries.map(({ name }) => beside(hidden, join(real, name))))).flat()
}
