/** The library that fails and traces a child's writes, compiled where it is needed: it is for Linux and takes a C compiler. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const SOURCE = join(import.meta.dirname, '../../fixtures/disk-shim.c')
const WRITE_SOMETHING = "require('node:fs').writeFileSync(process.argv[1], '')"

/** Compiles into this folder; `path`, or why there can be none on this machine. */
export function compileShim(folder: string): { readonly path: string } | { readonly missing: string } {
  if (process.platform !== 'linux') return { missing: `calls to the disk are caught on Linux only, and this is ${process.platform}` }
  const path = join(folder, 'disk-shim.so')
  const compiler = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', path, SOURCE, '-lpthread'], { encoding: 'utf8' })
  if (compiler.error) return { missing: `no C compiler: ${compiler.error.message}` }
  if (compiler.status !== 0) return { missing: `the C compiler failed: ${compiler.stderr}` }
  return catchesCalls(path, folder) ? { path } : { missing: 'this Node or this folder takes no preloaded library' }
}

function catchesCalls(shim: string, folder: string): boolean {
  const trace = join(folder, 'trace')
  const env = { ...process.env, LD_PRELOAD: shim, DISK_FOLDER: folder, DISK_TRACE: trace }
  spawnSync(process.execPath, ['-e', WRITE_SOMETHING, join(folder, 'something')], { env })
  return existsSync(trace)
}
