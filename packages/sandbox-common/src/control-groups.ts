/** Control groups, with which the kernel limits a command and all its child processes together. */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { SandboxPolicy } from '@sluice/sdk'

const MOUNT = '/sys/fs/cgroup'
/** The files that exist only if the kernel accounts swap. */
const SWAP_FILES = new Set(['memory.swap.max', 'memory.memsw.limit_in_bytes'])
/** A group younger than this may belong to a daemon in another container, whose process id is not visible here. */
const ABANDONED_AFTER_MS = 60_000
/** The kernel needs a moment to release a group after its processes ended. */
const REMOVE_ATTEMPTS_MAX = 50
const REMOVE_WAIT_MS_MAX = 25

type Limits = Pick<SandboxPolicy, 'memoryBytesMax' | 'processesMax'>

/** A tree of control groups with at least one of the two controllers. */
interface Hierarchy {
  readonly parent: string
  /** The file of a group through which a process joins it. */
  readonly joinFile: string
  /** Returns the limit files of a group with their values, in the order in which they must be written. */
  limits(limits: Limits): readonly (readonly [file: string, value: number | undefined])[]
}

export interface ControlGroup {
  /** A process with a single thread joins the group when it writes 0 into each of these files. */
  readonly joinFiles: readonly string[]
  /** Kills the remaining processes of the group and removes it. */
  remove(): Promise<void>
}

export interface ControlGroups {
  create(limits: Limits): Promise<ControlGroup>
}

/** Finds the control groups for processes and memory. Returns undefined if this user may not create any; usually only root may. */
export async function findControlGroups(): Promise<ControlGroups | undefined> {
  const own = await readFile('/proc/self/cgroup', 'utf8').catch(() => '')
  for (const hierarchies of [await version2(own), version1(own)]) {
    if (hierarchies.length === 0) continue
    const groups = { create: (limits: Limits) => create(hierarchies, limits) }
    try {
      await (await groups.create({ memoryBytesMax: 1 << 30, processesMax: 100 })).remove()
      for (const { parent } of hierarchies) await removeAbandoned(parent)
      return groups
    } catch {
      // This user may not create groups in this version; the other one may work.
    }
  }
  return undefined
}

/** Describes how processes and memory are limited, for the probe of a backend. */
export function describeLimits(groups: ControlGroups | undefined): string {
  if (groups) return 'processes and memory bounded by control groups'
  const isRoot = process.getuid?.() === 0
  return isRoot ? 'processes not bounded: root may make no control groups here' : 'processes and memory of each bounded by limits'
}

/** Removes the groups of daemons that were killed. The kernel keeps a group that is in use. */
async function removeAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const pid = /^sluice-(\d+)-/.exec(name)?.[1]
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue
    const { mtimeMs } = await stat(join(parent, name)).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
    if (Date.now() - mtimeMs > ABANDONED_AFTER_MS) await rmdir(join(parent, name)).catch(() => undefined)
  }
}

/** Version 2: one tree. A group that contains processes cannot limit its children, so new groups are siblings of the own one. */
async function version2(own: string): Promise<readonly Hierarchy[]> {
  const path = /^0::(\/.*)$/m.exec(own)?.[1]
  if (path === undefined) return []
  for (const parent of [join(MOUNT, path), dirname(join(MOUNT, path))]) {
    const controllers = (await readFile(join(parent, 'cgroup.subtree_control'), 'utf8').catch(() => '')).split(/\s+/)
    if (!controllers.includes('pids') || !controllers.includes('memory')) continue
    const limits: Hierarchy['limits'] = ({ memoryBytesMax, processesMax }) => [
      ['pids.max', processesMax],
      ['memory.max', memoryBytesMax],
      ['memory.swap.max', memoryBytesMax === undefined ? undefined : 0],
    ]
    return [{ parent, joinFile: 'cgroup.procs', limits }]
  }
  return []
}

/** Version 1: a tree for each controller. Joining through `tasks`, with a single thread, takes no lock of the whole machine. */
function version1(own: string): readonly Hierarchy[] {
  const parentOf = (controller: string) => {
    const path = own
      .split('\n')
      .find((line) => line.split(':')[1]?.split(',').includes(controller))
      ?.split(':')[2]
    return path === undefined ? undefined : join(MOUNT, controller, path)
  }
  const [processes, memory] = [parentOf('pids'), parentOf('memory')]
  if (processes === undefined || memory === undefined) return []
  return [
    { parent: processes, joinFile: 'tasks', limits: ({ processesMax }) => [['pids.max', processesMax]] },
    {
      parent: memory,
      joinFile: 'tasks',
      limits: ({ memoryBytesMax }) => [
        ['memory.limit_in_bytes', memoryBytesMax],
        ['memory.memsw.limit_in_bytes', memoryBytesMax],
      ],
    },
  ]
}

async function create(hierarchies: readonly Hierarchy[], limits: Limits): Promise<ControlGroup> {
  const folders: string[] = []
  const joinFiles: string[] = []
  const remove = async () => {
    for (const folder of folders) await removeGroup(folder)
  }
  try {
    const name = `sluice-${process.pid}-${randomUUID()}`
    for (const hierarchy of hierarchies) {
      const folder = join(hierarchy.parent, name)
      await mkdir(folder)
      folders.push(folder)
      joinFiles.push(join(folder, hierarchy.joinFile))
      for (const [file, value] of hierarchy.limits(limits)) {
        if (value === undefined || (SWAP_FILES.has(file) && !existsSync(join(folder, file)))) continue
        await writeFile(join(folder, file), String(value))
      }
    }
    return { joinFiles, remove }
  } catch (error) {
    await remove().catch(() => undefined)
    throw error
  }
}

async function removeGroup(folder: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await rmdir(folder)
    } catch (error) {
      if (attempt >= REMOVE_ATTEMPTS_MAX) throw error
      await killProcesses(folder)
      await setTimeout(Math.min(2 ** (attempt - 1), REMOVE_WAIT_MS_MAX))
    }
  }
}

/** Kills the processes of a group, which have outlived their command. */
async function killProcesses(folder: string): Promise<void> {
  const ids = (await readFile(join(folder, 'cgroup.procs'), 'utf8').catch(() => '')).split('\n').map(Number)
  for (const id of ids) {
    try {
      if (id > 1) process.kill(id, 'SIGKILL')
    } catch {
      // The process has already ended.
    }
  }
}
