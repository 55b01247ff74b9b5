/** Whether a step's output fits the JSON Schema it is declared with. */
import { runInNewContext } from 'node:vm'
import type { Schema } from '@cfworker/json-schema'
import { errorText } from '@sluice/sdk'

/** Some patterns, and some schemas that refer to themselves, would take years; nothing else happens meanwhile. */
const CHECK_MS_MAX = 500

/** What does not fit, as the end of a sentence; undefined when all does. Never throws: the tool has run by now. */
export async function outputProblem(schema: unknown, value: unknown): Promise<string | undefined> {
  if (schema === null || schema === undefined) return undefined
  const { Validator } = await import('@cfworker/json-schema')
  try {
    const check = () => new Validator(schema as Schema | boolean, '2020-12').validate(value)
    // Code of its own there would be nothing: it is the one way to end a regular expression.
    const { valid, errors }: ReturnType<typeof check> = runInNewContext('check()', { check }, { timeout: CHECK_MS_MAX })
    if (valid) return undefined
    const deepest = errors.at(-1)
    return deepest ? `${deepest.instanceLocation}: ${deepest.error}` : 'it is not what the schema says'
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return 'it takes too long to tell'
    return `the schema cannot be used (${errorText(error)})`
  }
}
