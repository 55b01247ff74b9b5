// Describes the machine and the build of a run: the numbers of two runs cannot be compared without it.
import { execFileSync } from 'node:child_process'
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { median } from './numbers.mjs'

const SYNCS = 50

/** Returns the median milliseconds of one small synced write, which each commit costs on this disk. Near zero on a disk in memory. */
function syncMs(scratch) {
  const file = join(scratch, 'sync')
  const descriptor = openSync(file, 'w')
  const page = Buffer.alloc(4096)
  const times = Array.from({ length: SYNCS }, () => {
    const start = performance.now()
    writeSync(descriptor, page)
    fdatasyncSync(descriptor)
    return performance.now() - start
  })
  closeSync(descriptor)
  rmSync(file)
  return median(times)
}

function commit() {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty'], { cwd: import.meta.dirname, encoding: 'utf8', stdio: 'pipe' }).trim()
  } catch {
    return null
  }
}

export const setting = (scratch) => ({
  date: new Date().toISOString(),
  commit: commit(),
  node: process.version,
  cores: cpus().length,
  cpu: cpus()[0]?.model.trim(),
  syncMs: syncMs(scratch),
})
