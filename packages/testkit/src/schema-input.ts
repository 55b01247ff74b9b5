/** Random input for a Valibot schema, made from the schema alone: most of it fits, much of it near the bounds. */
import fc from 'fast-check'
import type * as v from 'valibot'

/** The members of a schema that this generator reads, for schemas of any type. */
interface SchemaNode {
  readonly type: string
  readonly entries?: Readonly<Record<string, SchemaNode>>
  readonly wrapped?: SchemaNode
  readonly item?: SchemaNode
  readonly items?: readonly SchemaNode[]
  readonly key?: SchemaNode
  readonly value?: SchemaNode
  /** The schemas of a union, or the values of a pick list. */
  readonly options?: readonly unknown[]
  readonly literal?: unknown
  readonly pipe?: readonly { readonly type: string; readonly requirement?: unknown }[]
}

const nodeOf = (schema: v.GenericSchema): SchemaNode => schema as unknown as SchemaNode

/** Types whose input is plain JSON, so that a JSON Schema can describe them. */
const JSON_TYPES = ['object', 'strict_object', 'loose_object', 'string', 'number', 'boolean', 'null', 'literal', 'picklist', 'enum']
const MAY_BE_MISSING = ['optional', 'exact_optional', 'nullish']
const WRAPPERS = [...MAY_BE_MISSING, 'nullable']
const CONTAINERS = ['array', 'tuple', 'record', 'union', 'variant', 'unknown', 'any']

/** Returns the path and type of the first part that is not JSON, such as a date; `undefined` if all parts are. */
export function notJson(schema: v.GenericSchema, path = 'input'): string | undefined {
  const { type, entries = {}, wrapped, item, items = [], value, options = [] } = nodeOf(schema)
  if (![...JSON_TYPES, ...WRAPPERS, ...CONTAINERS].includes(type)) return `${path}: ${type}`
  const inner = [
    ...Object.entries(entries),
    ...(type === 'union' || type === 'variant' ? options : items).map((part, at) => [String(at), part] as const),
    ...[wrapped, item, value].filter((part) => part !== undefined).map((part) => ['*', part] as const),
  ]
  for (const [name, part] of inner) {
    const found = notJson(part as v.GenericSchema, `${path}.${name}`)
    if (found) return found
  }
  return undefined
}

/** Any JSON, objects with the schema's keys and any values, and input that fits. */
export function inputAround(schema: v.GenericSchema): fc.Arbitrary<unknown> {
  const keys = Object.keys(nodeOf(schema).entries ?? {})
  const keyed = fc.record(Object.fromEntries(keys.map((key) => [key, fc.jsonValue()])), { requiredKeys: [] })
  return fc.oneof(fc.jsonValue(), keyed, inputFor(schema))
}

/** Values for the schema. Nearly all fit; a check this generator does not know, such as a pattern, may refuse some. */
export const inputFor = (schema: v.GenericSchema): fc.Arbitrary<unknown> => arbitraryOf(nodeOf(schema))

function arbitraryOf(node: SchemaNode): fc.Arbitrary<unknown> {
  const bound = (type: string) => {
    const found = node.pipe?.find((action) => action.type === type)?.requirement
    return typeof found === 'number' ? found : undefined
  }
  switch (node.type) {
    case 'object':
    case 'strict_object':
    case 'loose_object': {
      const entries = Object.entries(node.entries ?? {})
      const requiredKeys = entries.filter(([, part]) => !MAY_BE_MISSING.includes(part.type)).map(([name]) => name)
      return fc.record(Object.fromEntries(entries.map(([name, part]) => [name, arbitraryOf(part)])), { requiredKeys })
    }
    case 'string':
      return anyText(bound('min_length') ?? 0, bound('max_length') ?? 10_000)
    case 'number': {
      const [min, max] = [bound('min_value') ?? -1e9, bound('max_value') ?? 1e9]
      const isWhole = node.pipe?.some(({ type }) => type === 'integer' || type === 'safe_integer')
      return isWhole ? fc.integer({ min: Math.ceil(min), max: Math.min(max, 2 ** 31) }) : fc.double({ min, max, noNaN: true })
    }
    case 'boolean':
      return fc.boolean()
    case 'picklist':
    case 'enum':
      return fc.constantFrom(...(node.options ?? []))
    case 'literal':
      return fc.constant(node.literal)
    case 'union':
    case 'variant':
      return fc.oneof(...(node.options ?? []).map((part) => arbitraryOf(part as SchemaNode)))
    case 'array':
      return fc.array(node.item ? arbitraryOf(node.item) : fc.jsonValue(), {
        minLength: bound('min_length') ?? 0,
        maxLength: Math.min(bound('max_length') ?? 5, 5),
      })
    case 'tuple':
      return fc.tuple(...(node.items ?? []).map(arbitraryOf))
    case 'record':
      return fc.dictionary(fc.string({ minLength: 1 }), node.value ? arbitraryOf(node.value) : fc.jsonValue(), { maxKeys: 5 })
    case 'nullable':
    case 'nullish':
      return fc.option(node.wrapped ? arbitraryOf(node.wrapped) : fc.jsonValue(), { nil: null })
    default:
      return node.wrapped ? arbitraryOf(node.wrapped) : fc.jsonValue()
  }
}

/** Words that people write, texts that look like paths, addresses and commands, and any Unicode. */
function anyText(minLength: number, maxLength: number): fc.Arbitrary<string> {
  const suspicious = [
    '..',
    '/',
    '../../etc/passwd',
    '/etc/passwd',
    '\0',
    '~/.ssh',
    'http://127.0.0.1/',
    'https://example.com/a',
    '$(id)',
    '; rm x',
    "'",
    '*',
  ]
  return fc
    .oneof(
      fc.string({ unit: 'binary', minLength, maxLength: Math.min(maxLength, minLength + 200) }),
      fc.constantFrom(...suspicious),
      fc.array(fc.constantFrom('a', ' ', '/', '.', 'ls', 'notes.txt', '\n', '-', 'é'), { maxLength: 12 }).map((parts) => parts.join('')),
    )
    .map((text) => (text.length < minLength ? text.padEnd(minLength, 'x') : text.slice(0, maxLength)))
}
