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

export interface Output {
  /** One line on standard output. */
  print(line: string): void
  /** Text or bytes on standard output as they are. */
  write(data: string | Uint8Array): void
  /** One line on standard error. */
  warn(line: string): void
  /** Data on standard output as JSON. */
  json(value: unknown): void
  /** Styles for a terminal; plain text anywhere else, and with NO_COLOR. */
  style(kind: Style, text: string): string
  /** Rows under headings, padded to their columns. */
  table(headings: readonly string[], rows: readonly (readonly string[])[]): void
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

const CODES: Record<Style, string> = { bold: '1', dim: '2', red: '31', green: '32', yellow: '33' }

/** Standard input: bytes, from a terminal or from elsewhere. */
export type Stdin = NodeJS.ReadableStream & { readonly isTTY?: boolean }

export interface Streams {
  readonly stdin: Stdin
  readonly stdout: { write(data: string | Uint8Array): unknown; readonly isTTY?: boolean }
  readonly stderr: { write(text: string): unknown }
}

export function createOutput({ stdout, stderr }: Omit<Streams, 'stdin'>, env: Readonly<Record<string, string | undefined>>): Output {
  const coloured = stdout.isTTY === true && !env.NO_COLOR
  const print = (line: string) => void stdout.write(`${line}\n`)
  const style = (kind: Style, text: string) => (coloured ? `\u001b[${CODES[kind]}m${text}\u001b[0m` : text)
  return {
    print,
    write: (data) => void stdout.write(data),
    warn: (line) => void stderr.write(`${line}\n`),
    json: (value) => print(JSON.stringify(value, null, 2)),
    style,
    table(headings, rows) {
      const widths = headings.map((heading, column) => Math.max(heading.length, ...rows.map((row) => (row[column] ?? '').length)))
      const line = (cells: readonly string[]) =>
        cells
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()
      print(style('bold', line(headings)))
      for (const row of rows) print(line(row))
    },
  }
}
