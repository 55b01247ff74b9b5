/** Whether a step's output fits the JSON Schema it is declared with. */
import type { Schema } from '@cfworker/json-schema'

/** What does not fit, as the end of a sentence; undefined when all does. The schema is one that loading has accepted. */
export async function outputProblem(schema: unknown, value: unknown): Promise<string | undefined> {
  if (schema === null || schema === undefined) return undefined
  const { Validator } = await import('@cfworker/json-schema')
  const { valid, errors } = new Validator(schema as Schema | boolean, '2020-12').validate(value)
  if (valid) return undefined
  const deepest = errors.at(-1)
  return deepest ? `${deepest.instanceLocation}: ${deepest.error}` : 'it is not what the schema says'
}
