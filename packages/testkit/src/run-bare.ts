/** Runs a sandbox backend's own program without a sandbox, as the daemon does. */
import { execFile } from 'node:child_process'
import { AppError, type RunBare } from '@sluice/sdk'

const TIMEOUT_MS = 60_000

/** Runs the program to its end. Rejects with `not_found` if it does not exist. */
export const runBare: RunBare = ({ file, args, cwd, env }, signal) => {
  const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<RunBare>>>()
  execFile(file, [...args], { cwd, env, signal, timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
    if (error && typeof error.code === 'string') reject(new AppError('not_found', `there is no program '${file}'`, { cause: error }))
    else resolve({ exitCode: error ? Number(error.code ?? 1) : 0, stdout, stderr })
  })
  return promise
}
