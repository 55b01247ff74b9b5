/** The types of a command: a description, which is data, and an implementation, which is imported when the command runs. */
import type { ParseArgsOptionsConfig } from 'node:util'
import type { CliContext } from './context.ts'

export interface CommandOption {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  readonly multiple?: true
  /** The placeholder that help shows after the option, such as `<seconds>`. */
  readonly value?: string
  readonly help: string
}

export interface CommandDescription {
  /** The words that select the command, such as `config set`. */
  readonly name: string
  /** One sentence without its full stop. */
  readonly summary: string
  /** A second paragraph of its help. */
  readonly more?: string
  /** The arguments in the usage line, such as `<key> [value]`. */
  readonly usage?: string
  readonly options?: Readonly<Record<string, CommandOption>>
  /** The largest number of positional arguments; default 0. */
  readonly argsMax?: number
  /** The smallest number of positional arguments; default 0. */
  readonly argsMin?: number
  /** True: the command takes `--url` and `--token-file` to use the API of another daemon. */
  readonly remote?: true
  /** True: features that the configuration does not name are not loaded. Default: only with `remote`; else the command may show the keys of all. */
  readonly loadsNamedFeatures?: true
  /** True: every argument except a common option is passed to the command unparsed. */
  readonly passesOn?: true
}

/** Runs a command and resolves to its exit code. Rejects with an `AppError` that `main` prints as one line. */
export type RunCommand = (context: CliContext) => Promise<number>

export interface CliCommand extends CommandDescription {
  /** Imports the implementation. */
  load(): Promise<RunCommand>
}

/** The options of every command. */
export const COMMON_OPTIONS = {
  config: { type: 'string', value: '<file>', help: 'configuration file (default: config.toml in the data directory)' },
  'data-dir': { type: 'string', value: '<dir>', help: 'data directory (default: ~/.sluice, or SVC_DATA_DIR)' },
  json: { type: 'boolean', help: 'machine-readable output' },
  help: { type: 'boolean', short: 'h', help: 'show help' },
} as const satisfies Record<string, CommandOption>

/** The options of every command that can use the API of another daemon. */
export const REMOTE_OPTIONS = {
  url: { type: 'string', value: '<url>', help: 'use the daemon at this address, with the token of --token-file or SVC_TOKEN' },
  'token-file': { type: 'string', value: '<file>', help: 'with --url: the file that holds the bearer token' },
} as const satisfies Record<string, CommandOption>

/** Returns all options that a command takes. */
export const allOptions = ({ options, remote }: Pick<CommandDescription, 'options' | 'remote'>): Record<string, CommandOption> => ({
  ...options,
  ...(remote && REMOTE_OPTIONS),
  ...COMMON_OPTIONS,
})

/** Returns the options of a command, common ones included, in the form of `parseArgs` of `node:util`. */
export const parserOptions = (command: Pick<CommandDescription, 'options' | 'remote'> = {}): ParseArgsOptionsConfig =>
  Object.fromEntries(
    Object.entries(allOptions(command)).map(([name, { type, short, multiple }]) => [
      name,
      { type, ...(short ? { short } : {}), ...(multiple ? { multiple } : {}) },
    ]),
  )
