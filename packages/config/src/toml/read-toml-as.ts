/** A TOML file as what a schema makes of it: the values, or every mistake with its place. */
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
  /** Present exactly if there are no problems. */
  readonly value?: Value
  /** In the order of the file. */
  readonly problems: readonly TomlProblem[]
}

/** Never throws for what a text may hold; `file` is named in problems and not read. Keys the schema lacks are problems. */
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
  // A key that is already known to be wrong has no second mistake.
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
