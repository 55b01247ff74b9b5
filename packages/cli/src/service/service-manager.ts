/** The contract of a service manager, and the programs and files that each of them uses. */
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname } from 'node:path'
import { systemClock } from '@sluice/kit'
import { createRunBare } from '@sluice/runtime/run-process'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import type { Scope, ServicePlan } from './service-plan.ts'

/** A file of the service, with its absolute path. */
export interface ServiceFile {
  readonly path: string
  readonly text: string
}

export interface ServiceStatus {
  readonly installed: boolean
  readonly running: boolean
  /** True: it starts with the machine, or with the session of its user. */
  readonly enabled: boolean
  /** The state in the words of the service manager, such as `active (running)`. */
  readonly state: string
  readonly pid: number | null
  /** The number of automatic restarts; null where it is not counted. */
  readonly restarts: number | null
}

export interface ServiceManager {
  readonly name: 'systemd' | 'launchd'
  /** The files of a service. */
  files(plan: ServicePlan): readonly ServiceFile[]
  /** Puts the written files in force. With `start`, starts the service, or restarts it. */
  install(plan: ServicePlan, options: { readonly start: boolean }): Promise<void>
  status(scope: Scope): Promise<ServiceStatus>
  /** Starts the service again, also one that is stopped. Resolves once it has started. */
  restart(scope: Scope): Promise<void>
  /** Stops the service until it is started again. Resolves once it has stopped. */
  stop(scope: Scope): Promise<void>
  /** Stops the service and removes its files. Returns false if there was none. */
  uninstall(scope: Scope): Promise<boolean>
  /** The command that shows the log. */
  logCommand(scope: Scope): string
}

/** The home folder of the caller. */
export const homeOf = ({ env }: Pick<CliContext, 'env'>): string => env.HOME || homedir()

export interface RunOptions {
  /** True: returns the output of a program that fails, instead of throwing. */
  readonly mayFail?: boolean
}

/** Runs a program of the service manager and returns its standard output. Throws `unavailable` with its error output if it fails. */
export async function runProgram(
  { env }: Pick<CliContext, 'env'>,
  words: readonly string[],
  { mayFail = false }: RunOptions = {},
): Promise<string> {
  const [file = '', ...args] = words
  const given = Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined))
  // The start of a service may take as long as its manager allows.
  const run = createRunBare(systemClock, Number.POSITIVE_INFINITY)
  const { exitCode, stdout, stderr } = await run({ file, args, cwd: '/', env: given }, new AbortController().signal)
  if (exitCode !== 0 && !mayFail)
    throw new AppError('unavailable', `'${words.join(' ')}' failed: ${stderr.trim() || `exit code ${exitCode}`}`)
  return stdout
}

/** Writes a file as a whole, readable for every user, if its text differs. Returns whether it did. */
export async function writeChanged({ path, text }: ServiceFile): Promise<boolean> {
  if (existsSync(path) && (await readFile(path, 'utf8')) === text) return false
  await mkdir(dirname(path), { recursive: true })
  const draft = `${path}.new`
  await writeFile(draft, text, { mode: 0o644 })
  await rename(draft, path)
  return true
}

/** Removes files. Returns whether one of them existed. */
export async function removeFiles(paths: readonly string[]): Promise<boolean> {
  const present = paths.filter((path) => existsSync(path))
  for (const path of present) await rm(path, { force: true })
  return present.length > 0
}
