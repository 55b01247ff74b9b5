/** What is wrong with a configuration, before and after its place in the file is known. */
import { AppError } from '@sluice/sdk'
import type { KeyPath } from './key-path.ts'
import type { ConfigProblem } from './types.ts'

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
export const problemLine = ({ file, line, column, message }: ConfigProblem): string =>
  line === undefined ? `${file}: ${message}` : `${file}:${line}:${column ?? 1}: ${message}`

/** The error every reader of a configuration throws; `fields.problems` holds at most `PROBLEMS_MAX`, in the order of the file. */
export function configError(problems: readonly ConfigProblem[]): AppError {
  const place = ({ line = Number.MAX_SAFE_INTEGER, column = 0 }: ConfigProblem) => [line, column] as const
  const ordered = problems.toSorted((a, b) => place(a)[0] - place(b)[0] || place(a)[1] - place(b)[1])
  const [first] = ordered
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  return new AppError('config_invalid', first ? `${problemLine(first)}${more}` : 'the configuration is not valid', {
    fields: { problems: ordered.slice(0, PROBLEMS_MAX) },
  })
}
