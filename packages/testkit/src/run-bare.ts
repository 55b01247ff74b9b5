/** A backend's own programs, run unconfined as the core would run them. */
import { execFile } from 'node:child_process'
import { AppError, type RunBare } from '@sluice/sdk'

const TIMEOUT_MS = 60_000

export const runBare: RunBare = ({ file, args, cwd, env }, signal) => {
  const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<RunBare>>>()
  execFile(file, [...args], { cwd, env, signal, timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
    if (error && typeof error.code === 'string') reject(new AppError('not_found', `there is no program '${file}'`, { cause: error }))
    else resolve({ exitCode: error ? Number(error.code ?? 1) : 0, stdout, stderr })
  })
  return promise
}
