/** Installs optional native packages next to a build, with npm, at the versions in its npm-shrinkwrap.json. */
import { existsSync } from 'node:fs'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import { createRunBare } from '@sluice/runtime/run-process'
import { AppError, errorText } from '@sluice/sdk'
import { type Build, projectOf } from './native-lock.ts'
import { findNpm, headersFolder, npmEnvironment } from './npm-program.ts'

/** Compiling takes a minute or two on a small machine. */
const NPM_MS_MAX = 1_200_000
const OUTPUT_LINES_SHOWN = 10
const MODULES = 'node_modules'

/** Statements that a package needs besides being loaded before it is known to work. */
const USES: Readonly<Record<string, string>> = { 'node-hid': '.getHidapiVersion()' }

export interface NativeResult {
  readonly name: string
  readonly version: string
  /** Why the package cannot be used; undefined when it can. */
  readonly problem: string | undefined
}

export interface InstallOptions {
  /** The folder of the build. */
  readonly folder: string
  readonly build: Build
  readonly names: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** Stops npm when it aborts. */
  readonly signal: AbortSignal
  /** The program and first arguments of npm, for tests. */
  readonly npm?: readonly string[]
}

/**
 * Installs the packages, and keeps the earlier ones. Replaces `node_modules` of the folder once npm has succeeded,
 * so that a failure changes nothing. Throws `unavailable` when npm is missing or fails, and when the folder cannot be written.
 */
export async function installNative({ folder, build, names, env, signal, npm }: InstallOptions): Promise<readonly NativeResult[]> {
  const command = npm ?? (await findNpm())
  if (!command) throw new AppError('unavailable', 'npm was not found; install npm, for example with Node from nodejs.org, and try again')
  const before = Object.keys(build.versions).filter((name) => existsSync(join(folder, MODULES, name)))
  const project = await makeProject(folder)
  try {
    const { manifest, lockfile } = projectOf(build, [...new Set([...before, ...names])].toSorted())
    await writeFile(join(project, 'package.json'), JSON.stringify(manifest))
    await writeFile(join(project, 'package-lock.json'), JSON.stringify(lockfile))
    const headers = await headersFolder()
    const runNpm = (...args: readonly string[]) =>
      run([...command, ...args, '--loglevel=error'], project, npmEnvironment(env, headers), signal)
    const { code, output } = await runNpm('ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline')
    if (code !== 0) throw new AppError('unavailable', `npm could not install the packages; nothing was changed:\n${lastLines(output)}`)
    // Without headers a compilation would download them. A package that cannot be compiled does not keep the others from being used.
    const compiled = Object.keys(manifest.dependencies).filter((name) => build.allowScripts[name] === true)
    if (headers !== undefined) for (const name of compiled) await runNpm('rebuild', name)
    const results = await Promise.all(names.map((name) => check(name, { project, build, headers, signal })))
    await replaceModules(folder, project)
    return results
  } finally {
    await rm(project, { recursive: true, force: true })
  }
}

async function makeProject(folder: string): Promise<string> {
  try {
    return await mkdtemp(join(folder, '.native-'))
  } catch (cause) {
    const cure = 'run the command as the user who installed Sluice, for example with sudo'
    throw new AppError('unavailable', `The folder ${folder} cannot be written (${errorText(cause)}); ${cure}`, { cause })
  }
}

interface CheckOptions {
  readonly project: string
  readonly build: Build
  readonly headers: string | undefined
  readonly signal: AbortSignal
}

/** Loads the package in a process of its own, as a native package can end its process. */
async function check(name: string, { project, build, headers, signal }: CheckOptions): Promise<NativeResult> {
  const { versions, allowScripts } = build
  const version = versions[name] ?? ''
  const statement = `require(${JSON.stringify(name)})${USES[name] ?? ''}`
  const { code, output } = await run([process.execPath, '-e', statement], project, process.env, signal)
  if (code === 0) return { name, version, problem: undefined }
  const isCompiled = allowScripts[name] === true
  if (isCompiled && headers === undefined)
    return { name, version, problem: `needs the C++ headers of Node ${process.versions.node}, which are not next to ${process.execPath}` }
  if (isCompiled) return { name, version, problem: 'could not be compiled: it needs Python 3, make and a C++ compiler' }
  return { name, version, problem: /^\w*Error: (.*)$/m.exec(output)?.[1] ?? 'cannot be loaded on this machine' }
}

async function replaceModules(folder: string, project: string): Promise<void> {
  const modules = join(folder, MODULES)
  if (existsSync(modules)) await rename(modules, join(project, 'replaced'))
  if (existsSync(join(project, MODULES))) await rename(join(project, MODULES), modules)
}

const lastLines = (output: string): string => output.trimEnd().split('\n').slice(-OUTPUT_LINES_SHOWN).join('\n')

interface Ended {
  readonly code: number | null
  readonly output: string
}

async function run(words: readonly string[], cwd: string, given: NodeJS.ProcessEnv, signal: AbortSignal): Promise<Ended> {
  const [file = '', ...args] = words
  const env = Object.fromEntries(Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined))
  const { exitCode, stdout, stderr } = await createRunBare(systemClock, NPM_MS_MAX)({ file, args, cwd, env }, signal)
  return { code: exitCode, output: stdout + stderr }
}
