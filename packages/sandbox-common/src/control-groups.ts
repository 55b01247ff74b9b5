/** Control groups: what a command and all it starts use together, bounded and counted by the kernel, where we may make them. */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { SandboxPolicy } from '@sluice/sdk'

const MOUNT = '/sys/fs/cgroup'
/** There where the kernel counts swap: a command gets none. */
const OF_SWAP = new Set(['memory.swap.max', 'memory.memsw.limit_in_bytes'])
/** A daemon in another container may have an id that is not seen here. */
const ABANDONED_AFTER_MS = 60_000
/** The kernel takes a moment to let go of processes that ended. */
const REMOVE_ATTEMPTS_MAX = 50
const REMOVE_WAIT_MS_MAX = 25

type Bounds = Pick<SandboxPolicy, 'memoryBytesMax' | 'processesMax'>

interface Hierarchy {
  readonly parent: string
  readonly join: string
  /** Files of a new group and what is written to them, in order. */
  limits(bounds: Bounds): readonly (readonly [file: string, value: number | undefined])[]
}

export interface ControlGroup {
  /** A process of one thread that writes 0 into each of these is in it. */
  readonly joins: readonly string[]
  /** Ends what is left in it, and removes it. */
  remove(): Promise<void>
}

export interface ControlGroups {
  create(bounds: Bounds): Promise<ControlGroup>
}

/** Those of this machine that count both processes and memory; `undefined` where we may make none, as ordinary users mostly. */
export async function findControlGroups(): Promise<ControlGroups | undefined> {
  const own = await readFile('/proc/self/cgroup', 'utf8').catch(() => '')
  for (const hierarchies of [await unified(own), split(own)]) {
    if (hierarchies.length === 0) continue
    const groups = { create: (bounds: Bounds) => create(hierarchies, bounds) }
    try {
      await (await groups.create({ memoryBytesMax: 1 << 30, processesMax: 100 })).remove()
      for (const { parent } of hierarchies) await removeAbandoned(parent)
      return groups
    } catch {
      // not ours to make: the next kind
    }
  }
  return undefined
}

/** Those of daemons that were killed; the kernel keeps any that is in use. */
async function removeAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const pid = /^sluice-(\d+)-/.exec(name)?.[1]
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue
    const { mtimeMs } = await stat(join(parent, name)).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
    if (Date.now() - mtimeMs > ABANDONED_AFTER_MS) await rmdir(join(parent, name)).catch(() => undefined)
  }
}

/** The second version: beside our own group, since a group with processes in it may bound none below it. */
async function unified(own: string): Promise<readonly Hierarchy[]> {
  const path = /^0::(\/.*)$/m.exec(own)?.[1]
  if (path === undefined) return []
  for (const parent of [join(MOUNT, path), dirname(join(MOUNT, path))]) {
    const bounded = (await readFile(join(parent, 'cgroup.subtree_control'), 'utf8').catch(() => '')).split(/\s+/)
    if (!bounded.includes('pids') || !bounded.includes('memory')) continue
    const limits: Hierarchy['limits'] = ({ memoryBytesMax, processesMax }) => [
      ['pids.max', processesMax],
      ['memory.max', memoryBytesMax],
      ['memory.swap.max', memoryBytesMax === undefined ? undefined : 0],
    ]
    return [{ parent, join: 'cgroup.procs', limits }]
  }
  return []
}

/** The first version: a tree for each of the two. To move a thread, and be the only one, takes no lock of the whole machine's. */
function split(own: string): readonly Hierarchy[] {
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
    { parent: processes, join: 'tasks', limits: ({ processesMax }) => [['pids.max', processesMax]] },
    {
      parent: memory,
      join: 'tasks',
      limits: ({ memoryBytesMax }) => [
        ['memory.limit_in_bytes', memoryBytesMax],
        ['memory.memsw.limit_in_bytes', memoryBytesMax],
      ],
    },
  ]
}

async function create(hierarchies: readonly Hierarchy[], bounds: Bounds): Promise<ControlGroup> {
  const made: string[] = []
  const joins: string[] = []
  const remove = async () => {
    for (const folder of made) await removeFolder(folder)
  }
  try {
    const name = `sluice-${process.pid}-${randomUUID()}`
    for (const { parent, join: file, limits } of hierarchies) {
      const folder = join(parent, name)
      await mkdir(folder)
      made.push(folder)
      joins.push(join(folder, file))
      for (const [limit, value] of limits(bounds)) {
        if (value === undefined || (OF_SWAP.has(limit) && !existsSync(join(folder, limit)))) continue
        await writeFile(join(folder, limit), String(value))
      }
    }
    return { joins, remove }
  } catch (error) {
    await remove().catch(() => undefined)
    throw error
  }
}

async function removeFolder(folder: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await rmdir(folder)
    } catch (error) {
      if (attempt >= REMOVE_ATTEMPTS_MAX) throw error
      await killAll(folder)
      await setTimeout(Math.min(2 ** (attempt - 1), REMOVE_WAIT_MS_MAX))
    }
  }
}

/** Whoever is in it by now has outlived its command. */
async function killAll(folder: string): Promise<void> {
  const ids = (await readFile(join(folder, 'cgroup.procs'), 'utf8').catch(() => '')).split('\n').map(Number)
  for (const id of ids) {
    try {
      if (id > 1) process.kill(id, 'SIGKILL')
    } catch {
      // gone by itself
    }
  }
}
