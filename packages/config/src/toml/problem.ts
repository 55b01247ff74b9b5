/** Problems of a file, before and after they are located. */
import { AppError } from '@sluice/sdk'
import type { KeyPath } from './key-path.ts'

/** One mistake in a file, in words that are enough to correct it. */
export interface TomlProblem {
  readonly file: string
  /** The line, from 1; absent when the problem has no place in the file. */
  readonly line?: number
  readonly column?: number
  /** The dotted key, such as `gateway.port`; empty when the problem has no key. */
  readonly key: string
  /** The sentence, with the expected value and the nearest known key. */
  readonly message: string
}

/** A mistake at a key that is not located yet. */
export interface Finding {
  readonly path: KeyPath
  /** The part to point at: the name of the key, its value, or nothing when the file does not have it. */
  readonly at: 'name' | 'value' | 'nowhere'
  /** The sentence, without secrets. */
  readonly message: string
}

/** The largest number of listed problems; further ones are counted. */
export const PROBLEMS_MAX = 100

/** Formats a problem as one line, such as `config.toml:3:5: …`. */
export const problemLine = ({ file, line, column, message }: TomlProblem): string =>
  line === undefined ? `${file}: ${message}` : `${file}:${line}:${column ?? 1}: ${message}`

/** Sorts problems by their place in the file; problems without a place are last. */
export function inFileOrder(problems: readonly TomlProblem[]): TomlProblem[] {
  const place = ({ line = Number.MAX_SAFE_INTEGER, column = 0 }: TomlProblem) => [line, column] as const
  return problems.toSorted((a, b) => place(a)[0] - place(b)[0] || place(a)[1] - place(b)[1])
}

/** Makes the error of an invalid file; `fields.problems` holds at most `PROBLEMS_MAX` problems in the order of the file. */
export function configError(problems: readonly TomlProblem[]): AppError {
  const ordered = inFileOrder(problems)
  const [first] = ordered
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  return new AppError('config_invalid', first ? `${problemLine(first)}${more}` : 'the configuration is not valid', {
    fields: { problems: ordered.slice(0, PROBLEMS_MAX) },
  })
}
