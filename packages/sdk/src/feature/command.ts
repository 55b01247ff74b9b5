/** The port of command-line commands of features. */
import type { CommandHelp } from './catalogue.ts'
import type { ConfigAddition } from './host.ts'

export interface CommandContext {
  /** The arguments after the words of the command. */
  readonly args: readonly string[]
  /** The absolute path of the caller's working directory, to which relative paths in `args` refer. The process may have another one. */
  readonly cwd: string
  readonly json: boolean
  /** Who runs it, as audit records name a person: `cli:<user>` at a terminal. */
  readonly by: string
  /** Prints one line on standard output. */
  print(line: string): void
  /** Prints one line on standard error. */
  warn(line: string): void
  /** Aborts when the caller interrupts the command or goes away. */
  readonly signal: AbortSignal
  /** Adds to the configuration file. Throws as `sluice config set` does. */
  addToConfig(addition: ConfigAddition): Promise<void>
  /**
   * Sets keys of the configuration file by their dotted paths, all or none; `undefined` removes a key or table. Secrets are
   * encrypted. Throws as `sluice config set` does.
   */
  setInConfig(values: Readonly<Record<string, unknown>>): Promise<void>
  /** Asks the person at the terminal; undefined when the input ended. Absent without a terminal. */
  ask?(question: string): Promise<string | undefined>
}

/** A command. It runs in the daemon, or in the process of the command line if no daemon runs. Its help comes from the catalogue when the catalogue lists it. */
export interface Command extends CommandHelp {
  /** The words that select the command, such as `plugin install`, as in the catalogue row. */
  readonly name: string
  /** Resolves to the exit code. Throws an `AppError` to fail with the exit code of its code. */
  run(context: CommandContext): Promise<number>
}
