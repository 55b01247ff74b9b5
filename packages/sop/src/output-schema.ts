/** Whether a value is a JSON Schema as far as it can be told without a value to check: what a step's `output` must be (§4.3). */
import { isTable } from '@sluice/config'

const TYPES = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'])

/** What a keyword's value must be; of others nothing is known. */
const KEYWORDS: Readonly<Record<string, (value: unknown) => string | undefined>> = {
  type: (value) => ([value].flat().every((name) => TYPES.has(String(name))) ? undefined : `must be one of ${[...TYPES].join(', ')}`),
  enum: (value) => (Array.isArray(value) ? undefined : 'must be a list'),
  required: (value) => (Array.isArray(value) && value.every((name) => typeof name === 'string') ? undefined : 'must be a list of texts'),
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

/** What is wrong with a schema, with the path to it; undefined: nothing that can be told. The value is JSON. */
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

/** `properties.name.type must be …`. */
const within = (name: string, problem: string | undefined): string | undefined =>
  problem === undefined ? undefined : `${name}${problem.startsWith('must') ? ' ' : '.'}${problem}`
