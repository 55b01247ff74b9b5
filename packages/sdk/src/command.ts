/** The port of command-line commands that features add. */
import type { CommandHelp } from './catalogue.ts'

export interface CommandContext {
  /** Arguments after the command's own words. */
  readonly args: readonly string[]
  readonly json: boolean
  /** One line on standard output. */
  print(line: string): void
  /** One line on standard error. */
  warn(line: string): void
  readonly signal: AbortSignal
  /** Asks who sits at the terminal; undefined: the input ended instead. Absent where nobody sits there. */
  ask?(question: string): Promise<string | undefined>
}

/** Of what stands in the catalogue, help is taken from there. */
export interface Command extends CommandHelp {
  /** The words that select it, such as `plugin install`; stands in the catalogue row. */
  readonly name: string
  /** Resolves to the exit code; throws `AppError` to fail with its own. */
  run(context: CommandContext): Promise<number>
}
