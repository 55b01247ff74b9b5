/** What is wrong with a file, before and after its place in the file is known. */
import { AppError } from '@sluice/sdk'
import type { KeyPath } from './key-path.ts'

/** One mistake in a file, said so that it can be mended without a manual. */
export interface TomlProblem {
  readonly file: string
  /** From 1; absent when the file does not say what is wrong, or not at one place. */
  readonly line?: number
  readonly column?: number
  /** Dotted: `gateway.port`; empty if it is about no key. */
  readonly key: string
  /** The whole sentence, with what was expected and the nearest known key. */
  readonly message: string
}

/** A mistake at a key. Its line is looked up only once there is a mistake to report. */
export interface Finding {
  readonly path: KeyPath
  /** What to point at: the key's name, its value, or nothing because the file says nothing about it. */
  readonly at: 'name' | 'value' | 'nowhere'
  /** The whole sentence, never with a secret in it. */
  readonly message: string
}

/** More than these are counted, not listed. */
export const PROBLEMS_MAX = 100

/** One problem as one line: `config.toml:3:5: …`. */
export const problemLine = ({ file, line, column, message }: TomlProblem): string =>
  line === undefined ? `${file}: ${message}` : `${file}:${line}:${column ?? 1}: ${message}`

/** In the order of the file; those without a place come last. */
export function inFileOrder(problems: readonly TomlProblem[]): TomlProblem[] {
  const place = ({ line = Number.MAX_SAFE_INTEGER, column = 0 }: TomlProblem) => [line, column] as const
  return problems.toSorted((a, b) => place(a)[0] - place(b)[0] || place(a)[1] - place(b)[1])
}

/** The error every reader of a configuration throws; `fields.problems` holds at most `PROBLEMS_MAX`, in the order of the file. */
export function configError(problems: readonly TomlProblem[]): AppError {
  const ordered = inFileOrder(problems)
  const [first] = ordered
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  return new AppError('config_invalid', first ? `${problemLine(first)}${more}` : 'the configuration is not valid', {
    fields: { problems: ordered.slice(0, PROBLEMS_MAX) },
  })
}
