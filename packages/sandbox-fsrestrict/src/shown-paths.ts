/** What a confined command sees of the system: programs and libraries, what of /etc is no secret, harmless devices, facts of the kernel. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { PUBLIC_ETC } from '@sluice/sdk'
import { EXECUTABLE, READABLE, USABLE } from './landlock.ts'

export interface ShownPath {
  readonly path: string
  /** Of Landlock; those its version does not know are left out later. */
  readonly rights: number
  readonly isFolder: boolean
}

const PROGRAMS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix/store']

/** Of a process only its own, by name: the folder would show the sockets and connections of the machine too. */
const OWN = ['status', 'stat', 'statm', 'cmdline', 'comm', 'maps', 'limits', 'fd', 'fdinfo', 'mountinfo', 'cgroup']

const FACTS = [
  ...['cpuinfo', 'meminfo', 'stat', 'uptime', 'loadavg', 'version', 'filesystems'].map((name) => join('/proc', name)),
  ...['kernel/cap_last_cap', 'kernel/ngroups_max', 'kernel/osrelease', 'kernel/pid_max', 'kernel/random', 'vm/overcommit_memory'].map(
    (name) => join('/proc/sys', name),
  ),
  ...OWN.map((name) => join('/proc/self', name)),
  '/sys/devices/system/cpu',
]

/** Devices that keep nothing, and those that give chance. */
const SINKS = ['/dev/null', '/dev/zero', '/dev/full']
const SOURCES = ['/dev/random', '/dev/urandom']

/** Those that are there; links are followed. */
export async function shownPaths(): Promise<readonly ShownPath[]> {
  const etc = PUBLIC_ETC.map((name) => join('/etc', name))
  const wanted = [
    ...PROGRAMS.map((path) => [path, EXECUTABLE] as const),
    ...[...etc, ...FACTS, ...SOURCES].map((path) => [path, READABLE] as const),
    ...SINKS.map((path) => [path, USABLE] as const),
  ]
  const found = await Promise.all(
    wanted.map(async ([path, rights]) => {
      const there = await stat(path).catch(() => undefined)
      return there ? [{ path, rights, isFolder: there.isDirectory() }] : []
    }),
  )
  return found.flat()
}
