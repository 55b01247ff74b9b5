/** Reads the keys of a schema into plain data. All other code uses this data and does not walk schemas itself. */
import type { KeyMetadata } from '@sluice/sdk'

export type Shape =
  /** `rest` describes keys with any other name; without it no other name is allowed. */
  | { readonly kind: 'table'; readonly keys: ReadonlyMap<string, Key>; readonly rest?: Key }
  | { readonly kind: 'list'; readonly item: Key; readonly min?: number; readonly max?: number }
  | { readonly kind: 'text'; readonly min?: number; readonly max?: number; readonly format?: string }
  | { readonly kind: 'number'; readonly whole?: true; readonly min?: number; readonly max?: number }
  | { readonly kind: 'flag' }
  | { readonly kind: 'choice'; readonly options: readonly (string | number | boolean)[] }
  /** The alternatives; empty when any value is accepted. */
  | { readonly kind: 'any'; readonly of: readonly Shape[] }

export interface Key {
  /** Validates a value of this key; absent for merged alternatives. */
  readonly schema?: object
  readonly shape: Shape
  readonly optional: boolean
  readonly fallback?: unknown
  readonly metadata: KeyMetadata
  /** The text of `v.description`. */
  readonly meaning?: string
}

/** The members of valibot's schemas and actions that this file reads. */
interface Node {
  readonly kind: 'schema' | 'validation' | 'transformation' | 'metadata'
  readonly type: string
  readonly pipe?: readonly Node[]
  readonly wrapped?: Node
  readonly default?: unknown
  readonly entries?: Readonly<Record<string, Node>>
  readonly rest?: Node
  readonly item?: Node
  readonly value?: Node
  readonly options?: readonly unknown[]
  readonly literal?: string | number | boolean
  readonly requirement?: unknown
  readonly metadata?: KeyMetadata & { readonly description?: string }
  readonly description?: string
}

const OPTIONAL = new Set(['optional', 'exact_optional', 'nullish', 'undefinedable'])
const WHOLE = new Set(['integer', 'safe_integer'])
const MIN = new Set(['min_value', 'min_length'])
const MAX = new Set(['max_value', 'max_length'])
const FORMATS: Readonly<Record<string, string>> = { url: 'a URL', email: 'an e-mail address', ip: 'an IP address', uuid: 'a UUID' }
const ANY: Key = { shape: { kind: 'any', of: [] }, optional: true, metadata: {} }

export const readKey = (schema: object): Key => keyOf(schema as Node)

export type KeyReader = typeof readKey

/** Returns a `readKey` that reads each schema once. It keeps what it has read, so its caller must not keep it. */
export function keyReader(): KeyReader {
  const read = new Map<object, Key>()
  return (schema) => {
    const key = read.get(schema) ?? readKey(schema)
    read.set(schema, key)
    return key
  }
}

/** Returns the keys of a section; empty when its schema is not a table. */
export const sectionKeys = (schema: object): ReadonlyMap<string, Key> => {
  const { shape } = readKey(schema)
  return shape.kind === 'table' ? shape.keys : new Map()
}

/** Returns the key below; a number is an index of a list. */
export function childKey({ shape }: Key, step: string | number): Key | undefined {
  if (shape.kind === 'list') return typeof step === 'number' ? shape.item : undefined
  if (shape.kind === 'table') return typeof step === 'string' ? (shape.keys.get(step) ?? shape.rest) : undefined
  return undefined
}

function keyOf(node: Node): Key {
  if (node.pipe) return { ...pipeKey(node.pipe), schema: node }
  if (node.wrapped) {
    const inner = keyOf(node.wrapped)
    const fallback = typeof node.default === 'function' ? node.default() : node.default
    return { ...inner, schema: node, optional: inner.optional || OPTIONAL.has(node.type), ...(fallback !== undefined && { fallback }) }
  }
  return { schema: node, shape: shapeOf(node), optional: false, metadata: {} }
}

function pipeKey([root, ...actions]: readonly Node[]): Key {
  let key = root ? keyOf(root) : ANY
  let transformed = false
  for (const action of actions) {
    if (action.kind === 'metadata') key = withMetadata(key, action)
    else if (action.kind === 'validation' && !transformed) key = { ...key, shape: narrow(key.shape, action) }
    // Later actions describe the transformed value, not the value in the file.
    else transformed = true
  }
  return key
}

function withMetadata(key: Key, { metadata, description = metadata?.description }: Node): Key {
  return { ...key, metadata: { ...key.metadata, ...metadata }, ...(description !== undefined && { meaning: description }) }
}

function narrow(shape: Shape, { type, requirement }: Node): Shape {
  const format = FORMATS[type]
  if (shape.kind === 'text' && format) return { ...shape, format }
  if (shape.kind === 'number' && WHOLE.has(type)) return { ...shape, whole: true }
  if (shape.kind !== 'number' && shape.kind !== 'text' && shape.kind !== 'list') return shape
  if (type === 'non_empty') return { ...shape, min: Math.max(shape.min ?? 0, 1) }
  if (typeof requirement !== 'number') return shape
  if (MIN.has(type)) return { ...shape, min: Math.max(shape.min ?? requirement, requirement) }
  if (MAX.has(type)) return { ...shape, max: Math.min(shape.max ?? requirement, requirement) }
  return shape
}

function shapeOf(node: Node): Shape {
  switch (node.type) {
    case 'string':
      return { kind: 'text' }
    case 'boolean':
      return { kind: 'flag' }
    case 'number':
    case 'bigint':
      return { kind: 'number' }
    case 'literal':
      return { kind: 'choice', options: node.literal === undefined ? [] : [node.literal] }
    case 'picklist':
    case 'enum':
      return { kind: 'choice', options: (node.options ?? []) as string[] }
    case 'array':
      return { kind: 'list', item: node.item ? keyOf(node.item) : ANY }
    case 'record':
      return { kind: 'table', keys: new Map(), rest: node.value ? keyOf(node.value) : ANY }
    case 'union':
    case 'variant':
    case 'intersect':
      return joinShapes((node.options ?? []).map((option) => keyOf(option as Node)))
    default:
      return node.entries ? tableShape(node) : ANY.shape
  }
}

function tableShape({ type, entries = {}, rest }: Node): Shape {
  const keys = new Map(Object.entries(entries).map(([name, entry]) => [name, keyOf(entry)]))
  if (rest) return { kind: 'table', keys, rest: keyOf(rest) }
  return type === 'loose_object' ? { kind: 'table', keys, rest: ANY } : { kind: 'table', keys }
}

/** Merges alternatives: tables and choices become one, other kinds stay alternatives. */
function joinShapes(options: readonly Key[]): Shape {
  const shapes = options.map(({ shape }) => shape)
  const tables = shapes.filter((shape) => shape.kind === 'table')
  if (tables.length === shapes.length && tables.length > 0) return mergeTables(tables)
  const choices = shapes.filter((shape) => shape.kind === 'choice')
  if (choices.length === shapes.length) return { kind: 'choice', options: [...new Set(choices.flatMap(({ options: own }) => own))] }
  return { kind: 'any', of: shapes }
}

const mergeKeys = (a: Key, b: Key): Key => ({
  shape: joinShapes([a, b]),
  optional: a.optional || b.optional,
  metadata: { ...b.metadata, ...a.metadata },
})

function mergeTables(tables: readonly Extract<Shape, { kind: 'table' }>[]): Shape {
  const keys = new Map<string, Key>()
  for (const { keys: own } of tables) {
    for (const [name, key] of own) {
      const known = keys.get(name)
      const joined = known && known.schema !== key.schema ? mergeKeys(known, key) : key
      // A key that only some alternatives have is optional in the merged table.
      keys.set(name, { ...joined, optional: joined.optional || !tables.every((table) => table.keys.has(name)) })
    }
  }
  const rest = tables.find((table) => table.rest)?.rest
  return rest ? { kind: 'table', keys, rest } : { kind: 'table', keys }
}
