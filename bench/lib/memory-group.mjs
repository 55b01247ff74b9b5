// A control group with a limit of memory, for one child. Needs root, or a group that this user may divide.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOTS = [
  { folder: '/sys/fs/cgroup', needs: 'cgroup.controllers', limit: 'memory.max', swap: 'memory.swap.max', noSwap: '0' },
  { folder: '/sys/fs/cgroup/memory', needs: 'memory.limit_in_bytes', limit: 'memory.limit_in_bytes', swap: 'memory.memsw.limit_in_bytes' },
]

/** Returns undefined where this user may make no control group. */
export function createMemoryGroup(bytes) {
  for (const { folder, needs, limit, swap, noSwap = String(bytes) } of ROOTS) {
    if (!existsSync(join(folder, needs))) continue
    const group = join(folder, `sluice-bench-${process.pid}`)
    try {
      mkdirSync(group)
      writeFileSync(join(group, limit), String(bytes))
    } catch {
      remove(group)
      continue
    }
    try {
      writeFileSync(join(group, swap), noSwap)
    } catch {
      // The kernel counts no swap, or this machine has none.
    }
    return { folder: group, kills: () => killsIn(group), remove: () => remove(group) }
  }
  return undefined
}

/** The number of processes of the group that the kernel killed for want of memory. */
function killsIn(group) {
  const file = ['memory.events', 'memory.oom_control'].map((name) => join(group, name)).find((path) => existsSync(path))
  const [, count] = /oom_kill (\d+)/.exec(file ? readFileSync(file, 'utf8') : '') ?? []
  return Number(count ?? 0)
}

/** The kernel removes a group only after its last process has gone. */
function remove(group) {
  try {
    rmdirSync(group)
  } catch {}
}
