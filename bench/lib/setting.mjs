// Where and on what a run was measured: without it, numbers of two runs can't be read side by side.
import { execFileSync } from 'node:child_process'
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { median } from './numbers.mjs'

const SYNCS = 50

/** Median milliseconds of one small write made durable: what the disk adds to each commit. Near zero on a disk in memory. */
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
