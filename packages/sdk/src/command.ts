/** The port of command-line commands of features. */
import type { CommandHelp } from './catalogue.ts'

export interface CommandContext {
  /** The arguments after the words of the command. */
  readonly args: readonly string[]
  readonly json: boolean
  /** Prints one line on standard output. */
  print(line: string): void
  /** Prints one line on standard error. */
  warn(line: string): void
  readonly signal: AbortSignal
  /** Asks the person at the terminal; undefined when the input ended. Absent without a terminal. */
  ask?(question: string): Promise<string | undefined>
}

/** A command. Its help comes from the catalogue when the catalogue lists it. */
export interface Command extends CommandHelp {
  /** The words that select the command, such as `plugin install`, as in the catalogue row. */
  readonly name: string
  /** Resolves to the exit code. Throws an `AppError` to fail with the exit code of its code. */
  run(context: CommandContext): Promise<number>
}
