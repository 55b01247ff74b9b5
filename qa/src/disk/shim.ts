/** Compiles the library that traces and fails a child's writes. It needs Linux and a C compiler. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const SOURCE = join(import.meta.dirname, '../../fixtures/disk-shim.c')
const WRITE_SOMETHING = "require('node:fs').writeFileSync(process.argv[1], '')"

/** Compiles the library into this folder; `missing` is the reason why this machine cannot use it. */
export function compileShim(folder: string): { readonly path: string } | { readonly missing: string } {
  if (process.platform !== 'linux') return { missing: `disk faults need Linux; this is ${process.platform}` }
  const path = join(folder, 'disk-shim.so')
  const compiler = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', path, SOURCE, '-lpthread'], { encoding: 'utf8' })
  if (compiler.error) return { missing: `no C compiler: ${compiler.error.message}` }
  if (compiler.status !== 0) return { missing: `the C compiler failed: ${compiler.stderr}` }
  return catchesCalls(path, folder) ? { path } : { missing: 'this Node or this folder does not allow a preloaded library' }
}

function catchesCalls(shim: string, folder: string): boolean {
  const trace = join(folder, 'trace')
  const env = { ...process.env, LD_PRELOAD: shim, DISK_FOLDER: folder, DISK_TRACE: trace }
  spawnSync(process.execPath, ['-e', WRITE_SOMETHING, join(folder, 'something')], { env })
  return existsSync(trace)
}
