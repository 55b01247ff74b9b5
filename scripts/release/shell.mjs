// Runs programs for a release, and ends it with a reason.
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'

export const ROOT = resolve(import.meta.dirname, '../..')

export class Refusal extends Error {}

export function refuse(message) {
  throw new Refusal(message)
}

/** Runs a program in the root of the repository, and returns its output. Throws a `Refusal` when it fails. */
export function run(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 28, ...options })
  if (status !== 0) refuse(`'${[command, ...args].join(' ')}' failed: ${error?.message ?? `${stdout}${stderr}`.trim()}`)
  return stdout.trim()
}
