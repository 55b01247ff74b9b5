/** Installs optional native packages next to a build, with npm, at the versions in its npm-shrinkwrap.json. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, errorText } from '@sluice/sdk'
import { type Build, projectOf } from './native-lock.ts'
import { findNpm, headersFolder, npmEnvironment } from './npm-program.ts'

const LOAD_MS_MAX = 60_000
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
  /** The program and first arguments of npm, for tests. */
  readonly npm?: readonly string[]
}

/**
 * Installs the packages, and keeps those that were installed before. Replaces `node_modules` of the folder once npm has succeeded,
 * so that a failure changes nothing. Throws `unavailable` when npm is missing or fails, and when the folder cannot be written.
 */
export async function installNative({ folder, build, names, env, npm }: InstallOptions): Promise<readonly NativeResult[]> {
  const command = npm ?? (await findNpm())
  if (!command) throw new AppError('unavailable', 'npm was not found; install npm, for example with Node from nodejs.org, and try again')
  const before = Object.keys(build.versions).filter((name) => existsSync(join(folder, MODULES, name)))
  const project = await makeProject(folder)
  try {
    const { manifest, lockfile } = projectOf(build, [...new Set([...before, ...names])].toSorted())
    await writeFile(join(project, 'package.json'), JSON.stringify(manifest))
    await writeFile(join(project, 'package-lock.json'), JSON.stringify(lockfile))
    const headers = await headersFolder()
    const flags = ['ci', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']
    const { code, output } = await run([...command, ...flags], project, npmEnvironment(env, headers))
    if (code !== 0) throw new AppError('unavailable', `npm could not install the packages; nothing was changed:\n${lastLines(output)}`)
    const results = await Promise.all(names.map((name) => check(project, name, build, headers)))
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

/** Loads the package in a process of its own, as a native package can end its process. */
async function check(project: string, name: string, { versions, allowScripts }: Build, headers: string | undefined): Promise<NativeResult> {
  const version = versions[name] ?? ''
  const statement = `require(${JSON.stringify(name)})${USES[name] ?? ''}`
  const { code, output } = await run([process.execPath, '-e', statement], project, process.env)
  if (code === 0) return { name, version, problem: undefined }
  const isCompiled = allowScripts[name] === true
  if (isCompiled && headers === undefined)
    return { name, version, problem: `needs the C++ headers of Node ${process.versions.node}, which are not next to ${process.execPath}` }
  if (isCompiled) return { name, version, problem: 'could not be compiled: it needs Python 3, make and a C++ compiler' }
  if (!existsSync(join(project, MODULES, name))) return { name, version, problem: 'npm could not install it on this machine' }
  return { name, version, problem: /^\w*Error: (.*)$/m.exec(output)?.[1] ?? 'cannot be loaded on this machine' }
}

async function replaceModules(folder: string, project: string): Promise<void> {
  const modules = join(folder, MODULES)
  if (existsSync(modules)) await rename(modules, join(project, 'replaced'))
  if (existsSync(join(project, MODULES))) await rename(join(project, MODULES), modules)
}

const lastLines = (output: string): string => output.trimEnd().split('\n').slice(-OUTPUT_LINES_SHOWN).join('\n')

function run(
  [program = '', ...args]: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<{ code: number | null; output: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ code: number | null; output: string }>()
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], ...(args[0] === '-e' && { timeout: LOAD_MS_MAX }) })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.on('error', reject)
  child.on('close', (code) => resolve({ code, output }))
  return promise
}
