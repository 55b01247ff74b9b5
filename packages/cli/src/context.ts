/** What a command of the core is given. */
import type { Feature } from '@sluice/sdk'

export interface CliContext {
  readonly version: string
  readonly profile: string
  readonly features: readonly Feature[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Absolute. */
  readonly dataDir: string
  /** Absolute; may not exist. */
  readonly configFile: string
  readonly args: readonly string[]
  readonly options: Readonly<Record<string, string | boolean | undefined>>
  readonly json: boolean
  readonly out: Output
  readonly stdin: Stdin
  /** A signal that aborts on SIGINT and SIGTERM; whoever asks for it takes over what they end. */
  interrupted(): AbortSignal
}

/** What a command prints through. All text is made printable; see output.ts. */
export interface Output {
  /** Prints one line on standard output. */
  print(line: string): void
  /** Writes text without a line break on standard output, or bytes, which stay as they are unless it is a terminal. */
  write(data: string | Uint8Array): void
  /** Prints one line on standard error. */
  warn(line: string): void
  /** Prints data on standard output as JSON. */
  json(value: unknown): void
  /** Returns text that has a style on a terminal and is plain anywhere else, and with NO_COLOR. */
  style(kind: Style, text: string): string
  /** Prints rows under headings in aligned columns; on a terminal, cells are wrapped to fit its width. */
  table(headings: readonly string[], rows: readonly (readonly string[])[]): void
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

/** Standard input: bytes, from a terminal or from elsewhere. */
export type Stdin = NodeJS.ReadableStream & { readonly isTTY?: boolean }

export interface Streams {
  readonly stdin: Stdin
  readonly stdout: { write(data: string | Uint8Array): unknown; readonly isTTY?: boolean; readonly columns?: number }
  readonly stderr: { write(text: string): unknown }
}
