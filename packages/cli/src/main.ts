/** The entry of the command line: finds the command, runs it, and turns an error into one line and an exit code. */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { AppError, checkFeatures, ERRORS, type Feature, loadFeatures } from '@sluice/sdk'
import manifest from '../package.json' with { type: 'json' }
import type { CliCommand } from './command.ts'
import type { CliContext, Output, Streams } from './context.ts'
import { DAEMON_COMMAND } from './daemon-command.ts'
import { asFileError } from './file-error.ts'
import { createOutput } from './output.ts'
import { parseArguments } from './parse-arguments.ts'
import { programName } from './program-name.ts'

/** The longest interval that Node accepts. */
const KEEP_ALIVE_MS = 2 ** 31 - 1

export interface MainOptions {
  /** The name of the build, such as `full`. */
  readonly profile: string
  readonly features: readonly Feature[]
  /** The arguments after `sluice`; default: the arguments of the process. */
  readonly argv?: readonly string[]
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly streams?: Streams
  /** The words that call this program in a terminal, for hints. Default: `sluice`. */
  readonly program?: string
  /** Whether all requests of this process go through the proxy that its environment names. */
  readonly usesProxy?: boolean
}

/** Runs one command and sets the exit code of the process. A profile ends with this call. */
export async function main(options: MainOptions): Promise<void> {
  // A reader such as `head` closes the pipe once it has read enough: that is not a failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  const program = programName(process.argv[1], process.env.PATH)
  process.exitCode = await runCommand({ program, ...options, usesProxy: true })
}

/** Runs one command and resolves to its exit code. Never rejects. */
export async function runCommand(options: MainOptions): Promise<number> {
  const { argv = process.argv.slice(2), env = process.env, streams = process, program = 'sluice' } = options
  const asJson = argv.includes('--json')
  const out = createOutput(streams, env, asJson ? 'sluice' : program)
  const ended = new AbortController()
  // Timers of the system clock are unreferenced. Without this one, the process could end while a command waits.
  const keepAlive = setInterval(() => undefined, KEEP_ALIVE_MS)
  try {
    checkFeatures(options.features)
    if (options.usesProxy && /_PROXY$/im.test(Object.keys(process.env).join('\n'))) await useProxy()
    const selected = startsDaemon(argv) ? DAEMON_COMMAND : await selectCommand(argv, options.features, out)
    if (typeof selected === 'number') return selected
    const { values, positionals } = await parseArguments(argv.slice(selected.name.split(' ').length), selected)
    const dataDir = resolve(textValue(values['data-dir']) ?? env.SVC_DATA_DIR ?? join(homedir(), '.sluice'))
    await finishInterruptedRestore(dataDir)
    // The API needs what the daemon needs: the features that the configuration names.
    if (!selected.loadsNamedFeatures && !selected.remote) await loadFeatures(options.features)
    return await run(selected, {
      version: manifest.version,
      profile: options.profile,
      features: options.features,
      env,
      dataDir,
      configFile: resolve(textValue(values.config) ?? join(dataDir, 'config.toml')),
      args: positionals,
      options: values,
      json: values.json === true,
      out,
      // Node opens standard input at the first access.
      get stdin() {
        return streams.stdin
      },
      interrupted: () => interruptSignal(ended.signal),
    })
  } catch (error) {
    return reportError(error, out, asJson)
  } finally {
    clearInterval(keepAlive)
    ended.abort()
  }
}

/** A Node before 24.14 cannot, which `sluice doctor` says. */
async function useProxy(): Promise<void> {
  const [{ proxySettings }, { setGlobalProxyFromEnv }] = await Promise.all([import('@sluice/kit/proxy'), import('node:http')])
  const proxy = proxySettings()
  if (proxy) setGlobalProxyFromEnv?.({ ...proxy })
}

/** Nothing may read half a restore; the code is loaded only for one. */
async function finishInterruptedRestore(dataDir: string): Promise<void> {
  if (!existsSync(join(dataDir, 'restore.json'))) return
  const { finishRestore } = await import('@sluice/backup/finish-restore')
  finishRestore(dataDir)
}

const startsDaemon = ([word, ...rest]: readonly string[]): boolean =>
  word === DAEMON_COMMAND.name && !rest.includes('--help') && !rest.includes('-h')

/** The descriptions of all commands are loaded only for a command that is not the daemon. */
async function selectCommand(argv: readonly string[], features: readonly Feature[], out: Output): Promise<CliCommand | number> {
  const module = await import('./select-command.ts')
  return module.selectCommand(argv, features, out)
}

async function run(command: CliCommand, context: CliContext): Promise<number> {
  try {
    const runCommand = await command.load()
    return await runCommand(context)
  } catch (error) {
    throw asFileError(error, context.dataDir) ?? error
  }
}

const textValue = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

/** Returns a signal that aborts on SIGINT and SIGTERM. Until `ended` aborts, these signals do not end the process. */
function interruptSignal(ended: AbortSignal): AbortSignal {
  const controller = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    const abort = () => controller.abort(signal)
    process.once(signal, abort)
    ended.addEventListener('abort', () => process.off(signal, abort), { once: true })
  }
  return controller.signal
}

/** One mistake in a configuration file, from the `problems` of an error. */
interface LocatedProblem {
  readonly file: string
  readonly line?: number
  readonly column?: number
  readonly message: string
}

/** Prints an `AppError` as one line, or as one line for each problem of a configuration; prints any other error with its stack. */
function reportError(error: unknown, out: Output, asJson: boolean): number {
  if (!(error instanceof AppError)) {
    out.warn(`sluice: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    return 1
  }
  const problems = (error.fields.problems ?? []) as readonly LocatedProblem[]
  if (asJson) out.warn(JSON.stringify({ error: error.message, code: error.code, ...error.fields }))
  else if (problems.length > 0) for (const problem of problems) out.warn(problemLine(problem))
  else out.warn(`sluice: ${error.message}`)
  return ERRORS[error.code].exit
}

const problemLine = ({ file, line, column, message }: LocatedProblem): string =>
  `${[file, line, column].filter((part) => part !== undefined).join(':')}: ${message}`
