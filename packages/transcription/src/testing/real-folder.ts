/** Test support: a workspace in a real folder and real processes, for programs that open their recording. */
import { execFile } from 'node:child_process'
import { mkdir, readdir, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AppError, type Spawn, type Workspace } from '@sluice/sdk'

/** A workspace without any path checks. */
export const realWorkspace = (root: string): Workspace => ({
  root,
  read: () => Promise.reject(new Error('this workspace does not support read')),
  open: () => Promise.reject(new Error('this workspace does not support open')),
  async write(path, bytes) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), bytes)
  },
  async list(path, { limit }) {
    const found = await readdir(join(root, path), { withFileTypes: true })
    const entries = found.map((entry) => ({
      name: entry.name,
      kind: entry.isDirectory() ? ('folder' as const) : ('file' as const),
      bytes: 0,
      modifiedAtMs: 0,
    }))
    return { entries: entries.slice(0, limit), more: entries.length > limit }
  },
  async remove(path) {
    const found = await stat(join(root, path))
    await (found.isDirectory() ? rmdir(join(root, path)) : rm(join(root, path)))
  },
})

/** Starts programs without a sandbox. */
export const realSpawn: Spawn = ({ file, args, cwd, env, timeoutMs, signal, outputBytesMax }) =>
  new Promise((resolve, reject) => {
    const options = { cwd, env, timeout: timeoutMs, signal, maxBuffer: outputBytesMax }
    const child = execFile(file, args, options, (error, stdout, stderr) => {
      if (error && 'code' in error && error.code === 'ENOENT') return reject(new AppError('not_found', `Program '${file}' not found`))
      const { exitCode, signalCode, killed } = child
      const timedOut = killed && !signal.aborted
      resolve({ exitCode, signal: signalCode, timedOut, stdout, stderr, truncated: false, sandbox: 'none' })
    })
  })
