/** The surroundings of a command: its arguments, its data directory, and the streams that it reads and prints to. */
import type { Feature } from '@sluice/sdk'

export interface CliContext {
  readonly version: string
  /** The name of the build, such as `full`. */
  readonly profile: string
  readonly features: readonly Feature[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Absolute. */
  readonly dataDir: string
  /** Absolute; may not exist. */
  readonly configFile: string
  /** The positional arguments. */
  readonly args: readonly string[]
  readonly options: Readonly<Record<string, string | boolean | undefined>>
  /** True with `--json`. */
  readonly json: boolean
  readonly out: Output
  readonly stdin: Stdin
  /**
   * Returns a signal that aborts on SIGINT and SIGTERM. After this call, these signals no longer end the process: the command
   * must end when the signal aborts.
   */
  interrupted(): AbortSignal
}

/** The output of a command. Control characters in a text are printed as escapes; see output.ts. */
export interface Output {
  /** Prints one line on standard output. */
  print(line: string): void
  /** Prints one line on standard output, in which each command, such as 'sluice status', is shown as it is typed here. */
  hint(line: string): void
  /** Writes text without a line break on standard output, or bytes, which are unchanged unless standard output is a terminal. */
  write(data: string | Uint8Array): void
  /** Prints one line on standard error, in which each command is shown as it is typed here. */
  warn(line: string): void
  /** Replaces the line of the cursor on the terminal of standard error; an empty text clears it. Anywhere else, nothing is shown. */
  progress(line: string): void
  /** Prints data on standard output as JSON. */
  json(value: unknown): void
  /** Returns styled text on a terminal; plain text anywhere else, and with NO_COLOR. */
  style(kind: Style, text: string): string
  /** Prints rows under headings in aligned columns; on a terminal, cells are wrapped to fit its width. */
  table(headings: readonly string[], rows: readonly (readonly string[])[]): void
}

export type Style = 'bold' | 'dim' | 'italic' | 'strike' | 'red' | 'green' | 'yellow' | 'cyan'

/** Standard input, which may be a terminal. */
export type Stdin = NodeJS.ReadableStream & { readonly isTTY?: boolean }

export interface Streams {
  readonly stdin: Stdin
  readonly stdout: { write(data: string | Uint8Array): unknown; readonly isTTY?: boolean; readonly columns?: number }
  readonly stderr: { write(text: string): unknown; readonly isTTY?: boolean }
}
