/** Reads a TOML file with a schema and returns its values, or every problem with its position. */
import { AppError } from '@sluice/sdk'
import * as v from 'valibot'
import { explainIssue } from './explain-issue.ts'
import { formatKeyPath } from './key-path.ts'
import { locateFindings } from './locate.ts'
import { parseToml } from './parse-toml.ts'
import { inFileOrder, type TomlProblem } from './problem.ts'
import { readKey } from './schema-keys.ts'
import { unknownKeys } from './unknown-keys.ts'

export interface TomlReading<Value> {
  /** The value; present only without problems. */
  readonly value?: Value
  /** The problems in the order of the file. */
  readonly problems: readonly TomlProblem[]
}

/** Never throws for any text. `file` is named in problems and is not read. A key that the schema does not have is a problem. */
export async function readTomlAs<Schema extends v.GenericSchema>(
  schema: Schema,
  text: string,
  file: string,
): Promise<TomlReading<v.InferOutput<Schema>>> {
  const parsed = await parseToml(text, file).catch(problemsOf)
  if (Array.isArray(parsed)) return { problems: parsed as TomlProblem[] }
  const top = readKey(schema)
  const unknown = unknownKeys(parsed, top, [])
  const result = v.safeParse(schema, parsed)
  // Reports one mistake for each key.
  const known = new Set(unknown.map(({ path }) => formatKeyPath(path)))
  const explained = (result.issues ?? []).map((issue) => explainIssue(issue, { top, section: [] }))
  const findings = [...unknown, ...explained.filter(({ path }) => !known.has(formatKeyPath(path)))]
  if (result.success && findings.length === 0) return { value: result.output, problems: [] }
  return { problems: inFileOrder(await locateFindings(file, text, findings)) }
}

function problemsOf(error: unknown): readonly TomlProblem[] {
  if (error instanceof AppError && error.code === 'config_invalid') return error.fields.problems as readonly TomlProblem[]
  throw error
}
