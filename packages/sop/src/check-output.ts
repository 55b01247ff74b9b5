/** Whether a step's output fits the JSON Schema it is declared with. */
import type { Schema } from '@cfworker/json-schema'
import { errorText } from '@sluice/sdk'

/** What does not fit, as the end of a sentence; undefined when all does. Never throws: the tool has run by now. */
export async function outputProblem(schema: unknown, value: unknown): Promise<string | undefined> {
  if (schema === null || schema === undefined) return undefined
  const { Validator } = await import('@cfworker/json-schema')
  try {
    const { valid, errors } = new Validator(schema as Schema | boolean, '2020-12').validate(value)
    if (valid) return undefined
    const deepest = errors.at(-1)
    return deepest ? `${deepest.instanceLocation}: ${deepest.error}` : 'it is not what the schema says'
  } catch (error) {
    return `the schema cannot be used (${errorText(error)})`
  }
}
