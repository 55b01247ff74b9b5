/** The JSON Schema that a step declares for its output: whether the schema is valid, and whether an output fits it. */
import { runInNewContext } from 'node:vm'
import type { Schema } from '@cfworker/json-schema'
import { isTable } from '@sluice/config'
import { errorText } from '@sluice/sdk'

/** Some patterns and some self-referring schemas take practically for ever to check. The check blocks the event loop. */
const CHECK_MS_MAX = 500

/** Returns why the value does not fit the schema, as the end of a sentence; undefined when it fits. Never throws. */
export async function outputProblem(schema: unknown, value: unknown): Promise<string | undefined> {
  if (schema === null || schema === undefined) return undefined
  const { Validator } = await import('@cfworker/json-schema')
  try {
    const check = () => new Validator(schema as Schema | boolean, '2020-12').validate(value)
    // The context is not a sandbox. It is the only way to set a time limit for a regular expression.
    const { valid, errors }: ReturnType<typeof check> = runInNewContext('check()', { check }, { timeout: CHECK_MS_MAX })
    if (valid) return undefined
    const deepest = errors.at(-1)
    return deepest ? `${deepest.instanceLocation}: ${deepest.error}` : 'it does not match'
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return `the check took longer than ${CHECK_MS_MAX} ms`
    return `the schema cannot be used (${errorText(error)})`
  }
}

const TYPES = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'])

/** Checks the value of each known keyword; other keywords are not checked. */
const KEYWORDS: Readonly<Record<string, (value: unknown) => string | undefined>> = {
  type: (value) => ([value].flat().every((name) => TYPES.has(String(name))) ? undefined : `must be one of ${[...TYPES].join(', ')}`),
  enum: (value) => (Array.isArray(value) ? undefined : 'must be a list'),
  required: (value) =>
    Array.isArray(value) && value.every((name) => typeof name === 'string') ? undefined : 'must be an array of strings',
  pattern: (value) => (typeof value === 'string' && isPattern(value) ? undefined : 'must be a regular expression'),
  $ref: (value) => (typeof value === 'string' && value.startsWith('#') ? undefined : 'must begin with #: nothing is loaded from elsewhere'),
  ...keywords(['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'], isNumber),
  ...keywords(['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties', 'minContains', 'maxContains'], isCount),
  ...keywords(
    [
      'additionalProperties',
      'items',
      'contains',
      'not',
      'if',
      'then',
      'else',
      'propertyNames',
      'unevaluatedItems',
      'unevaluatedProperties',
    ],
    schemaProblem,
  ),
  ...keywords(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'], (value) =>
    isTable(value) ? first(Object.entries(value).map(([name, schema]) => within(name, schemaProblem(schema)))) : 'must be an object',
  ),
  ...keywords(['allOf', 'anyOf', 'oneOf', 'prefixItems'], (value) =>
    Array.isArray(value) ? first(value.map((schema, index) => within(String(index), schemaProblem(schema)))) : 'must be a list',
  ),
}

/** Returns the first problem that shows without a value to check, with its path; undefined if it has none. `schema` is JSON. */
export function schemaProblem(schema: unknown): string | undefined {
  if (typeof schema === 'boolean') return undefined
  if (!isTable(schema)) return 'must be an object, true or false'
  return first(
    Object.entries(schema).map(([keyword, value]) =>
      within(keyword, Object.hasOwn(KEYWORDS, keyword) ? KEYWORDS[keyword]?.(value) : undefined),
    ),
  )
}

function keywords(
  names: readonly string[],
  check: (value: unknown) => string | undefined,
): Record<string, (value: unknown) => string | undefined> {
  return Object.fromEntries(names.map((name) => [name, check]))
}

function isNumber(value: unknown): string | undefined {
  return typeof value === 'number' ? undefined : 'must be a number'
}

function isCount(value: unknown): string | undefined {
  return Number.isInteger(value) && Number(value) >= 0 ? undefined : 'must be a whole number'
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text, 'u')
    return true
  } catch {
    return false
  }
}

const first = (problems: readonly (string | undefined)[]): string | undefined => problems.find((problem) => problem !== undefined)

/** Puts a keyword in front of a problem: `properties.name.type must be …`. */
const within = (name: string, problem: string | undefined): string | undefined =>
  problem === undefined ? undefined : `${name}${problem.startsWith('must') ? ' ' : '.'}${problem}`
