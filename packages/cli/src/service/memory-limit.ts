/** The memory that this process may use, and the options of Node that keep its heap within it. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beginAgain, canBeginAgain } from './begin-again.ts'

const MIB = 1024 * 1024
/** V8 takes half of a limit that it knows. The rest is for code, stacks, buffers, SQLite and the page cache. */
const HEAP_SHARE = 0.5
/** V8's own choice is a little over half, since it adds the young generation. */
const HEAP_SHARE_MAX = 0.6
const HEAP_MIB_MIN = 64
/** Options by which an operator has chosen the size of the heap. */
const CHOSEN = /--max[-_](?:old[-_]space|heap)[-_]size/

const textOf = (file: string): string => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** `max` means no limit, as does the huge number in the first version of control groups. */
function bytesIn(file: string): number {
  const bytes = Number(/^\d+/.exec(textOf(file))?.[0] ?? Number.POSITIVE_INFINITY)
  return bytes > Number.MAX_SAFE_INTEGER ? Number.POSITIVE_INFINITY : bytes
}

/**
 * Returns the smallest limit, in bytes, of the control group of this process and of all groups above it, in both versions of control
 * groups; infinite without any. V8 knows only the limit of the group itself, and not that of a slice or a pod around it.
 */
export function memoryLimit(root = '/'): number {
  const limits = textOf(join(root, 'proc/self/cgroup'))
    .split('\n')
    .flatMap((line) => {
      const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? []
      if (path === undefined) return []
      if (controllers === '') return limitsOf(join(root, 'sys/fs/cgroup'), path, ['memory.max', 'memory.high'])
      const isOfMemory = controllers?.split(',').includes('memory')
      return isOfMemory ? limitsOf(join(root, 'sys/fs/cgroup/memory'), path, ['memory.limit_in_bytes']) : []
    })
  return Math.min(Number.POSITIVE_INFINITY, ...limits)
}

function limitsOf(mount: string, path: string, names: readonly string[]): number[] {
  const limits: number[] = []
  for (let group = path; ; group = dirname(group)) {
    limits.push(...names.map((name) => bytesIn(join(mount, group, name))))
    if (group === '/') return limits
  }
}

/** Returns the options that keep the heap within a limit; none where V8 has chosen well itself, or where the operator has chosen. */
export function heapOptions(limit: number, given: readonly string[], heapLimit: number): string[] {
  if (heapLimit <= limit * HEAP_SHARE_MAX || given.some((option) => CHOSEN.test(option))) return []
  return [`--max-old-space-size=${Math.max(HEAP_MIB_MIN, Math.floor((limit * HEAP_SHARE) / MIB))}`]
}

/**
 * Starts this program again, as the same process, if its heap could outgrow the memory that it may use. V8 takes the size of its heap
 * only at the start. Does nothing where the memory is not limited.
 */
export async function fitHeap(env: Readonly<Record<string, string | undefined>>): Promise<void> {
  const limit = memoryLimit()
  if (limit === Number.POSITIVE_INFINITY || !canBeginAgain()) return
  const { getHeapStatistics } = await import('node:v8')
  const options = heapOptions(limit, [...process.execArgv, env.NODE_OPTIONS ?? ''], getHeapStatistics().heap_size_limit)
  if (options.length > 0) beginAgain(options)
}
