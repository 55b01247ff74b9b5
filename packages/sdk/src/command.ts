/** The port of command-line commands that features add. */

export interface CommandContext {
  /** Arguments after the command's own words. */
  readonly args: readonly string[]
  readonly json: boolean
  /** One line on standard output. */
  print(line: string): void
  /** One line on standard error. */
  warn(line: string): void
  readonly signal: AbortSignal
}

export interface Command {
  /** The words that select it, such as `plugin install`; stands in the catalogue row. */
  readonly name: string
  readonly summary: string
  /** What follows the words in the usage line, such as `<directory-or-url>`. */
  readonly usage?: string
  /** Resolves to the exit code; throws `AppError` to fail with its own. */
  run(context: CommandContext): Promise<number>
}
