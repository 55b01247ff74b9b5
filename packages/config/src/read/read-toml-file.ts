/** Reads a TOML file of a feature with the checks and messages of the configuration. */

import type * as v from 'valibot'
import { configError } from '../toml/problem.ts'
import { readTomlAs } from '../toml/read-toml-as.ts'
import { readConfigText } from './read-config.ts'

/** Resolves to undefined when the file is empty or does not exist. Throws `config_invalid` with every problem. */
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
