/** Reads a TOML file of a feature's own, with the same care and the same messages as the configuration. */

import type * as v from 'valibot'
import { readConfigText } from './read-config.ts'
import { configError } from './toml/problem.ts'
import { readTomlAs } from './toml/read-toml-as.ts'

/** An empty file and one that is not there are the same: undefined. Throws `config_invalid`. */
export async function readTomlFile<Schema extends v.GenericSchema>(
  file: string,
  schema: Schema,
): Promise<v.InferOutput<Schema> | undefined> {
  const text = await readConfigText(file)
  if (text.trim() === '') return undefined
  const { value, problems } = await readTomlAs(schema, text, file)
  if (problems.length > 0) throw configError(problems)
  return value
}
