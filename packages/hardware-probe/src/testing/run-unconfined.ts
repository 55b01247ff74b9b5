/** Implements `host.spawn` without a sandbox, for programs in the folders of a test. */
import { execFile } from 'node:child_process'
import { AppError, type Spawn } from '@sluice/sdk'

/** `extra` is added to the environment of every process. */
export const runUnconfined =
  (extra: Readonly<Record<string, string>>): Spawn =>
  ({ file, args, cwd, env, timeoutMs, signal }) => {
    const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<Spawn>>>()
    const options = { cwd, env: { ...env, ...extra }, timeout: timeoutMs, signal }
    execFile(file, [...args], options, (error, stdout, stderr) => {
      if (error && 'code' in error && error.code === 'ENOENT')
        return reject(new AppError('not_found', `the program '${file}' is not installed`))
      const exitCode = error ? (typeof error.code === 'number' ? error.code : null) : 0
      return resolve({ exitCode, signal: null, timedOut: error?.killed ?? false, stdout, stderr, truncated: false, sandbox: 'none' })
    })
    return promise
  }
