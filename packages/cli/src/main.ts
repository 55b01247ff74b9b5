/** The command line: finds the command, parses its options, turns what it throws into one line and an exit code. */
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { AppError, ERRORS, type Feature } from '@sluice/sdk'
import manifest from '../package.json' with { type: 'json' }
import { type CliCommand, COMMANDS, parserOptions } from './command-table.ts'
import type { CliContext, Output, Streams } from './context.ts'
import { featureCommands, ownCommand } from './feature-commands.ts'
import { asFileError } from './file-error.ts'
import { commandHelp, familyHelp, overview } from './help.ts'
import { createOutput } from './output.ts'

/** As long as a timer can be. */
const STAY_MS = 2 ** 31 - 1

export interface MainOptions {
  readonly profile: string
  readonly features: readonly Feature[]
  readonly argv?: readonly string[]
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly streams?: Streams
}

/** Runs one command and sets the process's exit code; what a profile ends with. */
export async function main(options: MainOptions): Promise<void> {
  // Whoever reads the output has seen enough, as `head` has: that is no failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  process.exitCode = await runCommand(options)
}

/** Runs one command and resolves to its exit code. Never rejects. */
export async function runCommand(options: MainOptions): Promise<number> {
  const { argv = process.argv.slice(2), env = process.env, streams = process, profile, features } = options
  const out = createOutput(streams, env)
  const asJson = argv.includes('--json')
  const ended = new AbortController()
  let dataDir: string | undefined
  // Timers of the clock keep no process alive, and a command may wait for nothing else.
  const stay = setInterval(() => undefined, STAY_MS)
  try {
    const commands = [...COMMANDS, ...featureCommands(features)]
    const words = argv.filter((word) => !word.startsWith('-'))
    if (words.length === 0 && argv.some((word) => word === '--version' || word === '-V')) return print(out, `sluice ${manifest.version}`)
    if (words.length === 0 || words[0] === 'help') {
      out.print(overview(commands, manifest.version))
      return words.length > 0 || argv.includes('--help') || argv.includes('-h') ? 0 : 2
    }
    const asksForHelp = argv.includes('--help') || argv.includes('-h')
    const known = commands.find(({ name }) => startsWith(argv, name)) ?? ownCommand(features, words)
    const family = familyOf(words, commands)
    if (!known && asksForHelp && words.length === 1 && family.length > 0) return print(out, familyHelp(words[0] ?? '', family))
    const command = known ?? (await unknownCommand(argv, commands))
    if (asksForHelp) return print(out, commandHelp(command))
    const rest = argv.slice(command.name.split(' ').length)
    const { values, positionals } = await parse(rest, command)
    dataDir = resolve(text(values['data-dir']) ?? env.SVC_DATA_DIR ?? join(homedir(), '.sluice'))
    const context: CliContext = {
      version: manifest.version,
      profile,
      features,
      env,
      dataDir,
      configFile: resolve(text(values.config) ?? join(dataDir, 'config.toml')),
      args: positionals,
      options: values,
      json: values.json === true,
      out,
      stdin: streams.stdin,
      interrupted: () => interrupted(ended.signal),
    }
    return await (await command.load()).run(context)
  } catch (error) {
    return report(asFileError(error, dataDir) ?? error, out, asJson)
  } finally {
    clearInterval(stay)
    ended.abort()
  }
}

const print = (out: Output, line: string): number => {
  out.print(line)
  return 0
}

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

const startsWith = (argv: readonly string[], name: string): boolean => name.split(' ').every((word, index) => argv[index] === word)

interface Parsed {
  readonly values: Record<string, string | boolean | undefined>
  readonly positionals: string[]
}

async function parse(args: readonly string[], command: CliCommand): Promise<Parsed> {
  if (command.passesOn) return parseCommon(args)
  try {
    const parsed = parseArgs({ args: [...args], options: parserOptions(command), allowPositionals: true, strict: true })
    const count = parsed.positionals.length
    if (count < (command.argsMin ?? 0)) throw new Error(`${command.usage?.split(' ')[count] ?? 'an argument'} is missing`)
    if (count > (command.argsMax ?? 0)) throw new Error(`'${parsed.positionals[command.argsMax ?? 0]}' is one argument too many`)
    return parsed as Parsed
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split(/\. To specify|\.?\n/)[0] ?? error.message) : String(error)
    const [, unknown] = /^Unknown option '--?([^']+)'/.exec(reason) ?? []
    const meant = unknown === undefined ? '' : await suggestion(unknown, Object.keys(parserOptions(command)), '--')
    throw new AppError('invalid_request', `${reason.replace(/\.$/, '')}${meant}; see 'sluice ${command.name} --help'`, { cause: error })
  }
}

/** Takes the common options out and leaves the rest, in order, to a feature's command. */
function parseCommon(args: readonly string[]): Parsed {
  const options = parserOptions({})
  const { values, tokens } = parseArgs({ args: [...args], options, allowPositionals: true, strict: false, tokens: true })
  const common = tokens.flatMap((token) => (token.kind === 'option' && Object.hasOwn(options, token.name) ? [token] : []))
  const taken = new Set(
    common.flatMap(({ index, value, inlineValue }) => (value !== undefined && !inlineValue ? [index, index + 1] : [index])),
  )
  return { values: values as Parsed['values'], positionals: args.filter((_, index) => !taken.has(index)) }
}

/** Those that begin with the same word. */
const familyOf = (words: readonly string[], commands: readonly CliCommand[]): readonly CliCommand[] =>
  commands.filter(({ name }) => name.startsWith(`${words[0]} `))

async function unknownCommand(argv: readonly string[], commands: readonly CliCommand[]): Promise<never> {
  const [first = ''] = argv
  // What follows an option may be its value, so there is no telling the command's words.
  if (first.startsWith('-')) throw new AppError('invalid_request', `options come after the command: sluice <command> ${first} …`)
  const end = argv.findIndex((word) => word.startsWith('-'))
  const words = end < 0 ? argv : argv.slice(0, end)
  const names = commands.map(({ name }) => name)
  const meant = (await suggestion(words.slice(0, 2).join(' '), names)) || (await suggestion(first, names))
  const family = familyOf(words, commands)
  const hint = family.length > 0 ? `there are: ${family.map(({ name }) => name).join(', ')}` : "'sluice --help' lists the commands"
  throw new AppError('invalid_request', `unknown command '${words.join(' ')}'${meant}; ${hint}`)
}

/** `; did you mean 'status'?`, or nothing if no name is close. */
async function suggestion(wrong: string, names: readonly string[], prefix = ''): Promise<string> {
  const { nearestName } = await import('@sluice/kit')
  const near = nearestName(wrong, names)
  return near === undefined ? '' : `; did you mean '${prefix}${near}'?`
}

/** Takes signals over until the command has ended. */
function interrupted(ended: AbortSignal): AbortSignal {
  const controller = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    const abort = () => controller.abort(signal)
    process.once(signal, abort)
    ended.addEventListener('abort', () => process.off(signal, abort), { once: true })
  }
  return controller.signal
}

interface Located {
  readonly file: string
  readonly line?: number
  readonly column?: number
  readonly message: string
}

/** One line for a refusal, one line per mistake for a configuration; a bug shows its stack. */
function report(error: unknown, out: Output, asJson: boolean): number {
  const known = error instanceof AppError ? error : undefined
  if (!known) {
    out.warn(`sluice: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    return 1
  }
  const problems = (known.fields.problems ?? []) as readonly Located[]
  if (asJson) out.warn(JSON.stringify({ error: known.message, code: known.code, ...known.fields }))
  else if (problems.length > 0) for (const problem of problems) out.warn(problemLine(problem))
  else out.warn(`sluice: ${known.message}`)
  return ERRORS[known.code].exit
}

const problemLine = ({ file, line, column, message }: Located): string =>
  `${[file, line, column].filter((part) => part !== undefined).join(':')}: ${message}`
