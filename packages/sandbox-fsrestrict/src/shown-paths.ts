/** What a confined command sees of the system: programs and libraries, what of /etc is no secret, harmless devices, facts of the kernel. */
import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { PROGRAM_FOLDERS, PUBLIC_ETC } from '@sluice/sandbox-common'
import { CONTROLLABLE, EXECUTABLE, READABLE, USABLE } from './landlock.ts'

export interface ShownPath {
  readonly path: string
  /** Of Landlock; those its version does not know are left out later. */
  readonly rights: number
  readonly isFolder: boolean
}

/** Programs take files that are missing for granted, but some fail on those they may not read. */
const MORE_ETC = ['gitconfig', 'hostname', 'login.defs']

/** Of a process only its own, by name: the folder would show the sockets and connections of the machine too. */
const OWN_FOLDER = '/proc/self'
const OWN = ['status', 'stat', 'cmdline', 'maps', 'fd', 'cgroup']

const FACTS = [
  ...['cpuinfo', 'meminfo', 'stat', 'uptime', 'loadavg', 'version', 'filesystems'].map((name) => join('/proc', name)),
  ...['kernel/cap_last_cap', 'kernel/random', 'vm/overcommit_memory'].map((name) => join('/proc/sys', name)),
  ...OWN.map((name) => join(OWN_FOLDER, name)),
  '/sys/devices/system/cpu',
]

/** Devices that keep nothing, and those that give chance. */
const SINKS = ['/dev/null', '/dev/zero', '/dev/full']
const SOURCES = ['/dev/random', '/dev/urandom']

/** What a policy gives of devices, and what the kernel says of them. */
export async function shownDevices(devices: readonly string[]): Promise<readonly ShownPath[]> {
  const wanted = [...devices.map((path) => [path, CONTROLLABLE] as const), ...(devices.length > 0 ? [['/sys', READABLE] as const] : [])]
  const shown = wanted.map(async ([path, rights]) => {
    const found = await stat(path).catch(() => undefined)
    return found ? [{ path, rights, isFolder: found.isDirectory() }] : []
  })
  return (await Promise.all(shown)).flat()
}

/**
 * Those that are there, without links, and without those below another that gives as much. Of a folder that `hidden` lies in,
 * a path without links, only what stands beside it.
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

/** A rule of Landlock holds for all that is below, so it has to begin below what holds something to hide. */
async function beside(hidden: string, path: string): Promise<string[]> {
  const real = await realpath(path).catch(() => undefined)
  if (real === undefined || real === hidden || real.startsWith(`${hidden}/`)) return []
  if (!hidden.startsWith(`${real}/`)) return [real]
  // what a link leads to is shown by itself or not at all
  const entries = (await readdir(real, { withFileTypes: true })).filter((entry) => !entry.isSymbolicLink())
  return (await Promise.all(entries.map(({ name }) => beside(hidden, join(real, name))))).flat()
}
