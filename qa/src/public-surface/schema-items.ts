/** Turns JSON Schemas into flat lists of items, which can be compared between releases. */

/** One named part of a public surface, such as a key or a member of an answer. */
export interface Item {
  /** The JSON types that a value may have. */
  readonly types?: readonly string[]
  /** All values that are possible, where there are few. */
  readonly values?: readonly unknown[]
  readonly required?: true
}

/** Items by name. The name of a part begins with the name of the whole. */
export type Items = Record<string, Item>

export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly additionalProperties?: JsonSchema | boolean
  readonly 'x-env'?: readonly string[]
}

export type References = Readonly<Record<string, JsonSchema>>

const PREFIX = '#/components/schemas/'
/** A deeper value is described by a schema that refers to itself. */
const DEPTH_MAX = 16

/** Adds the items of a schema under a name. `references` are the schemas under `#/components/schemas/`. */
export function addSchema(items: Items, name: string, schema: JsonSchema, references: References = {}): void {
  add(items, { name, schema, references, isRequired: false, depth: 0 })
}

interface Place {
  readonly name: string
  readonly schema: JsonSchema
  readonly references: References
  readonly isRequired: boolean
  readonly depth: number
}

function add(items: Items, place: Place): void {
  const { name, schema, references, isRequired, depth } = place
  if (depth > DEPTH_MAX) return
  const alternatives = alternativesOf(schema, references)
  const types = [...new Set(alternatives.flatMap(typesOf))].sort()
  const values = alternatives.every((one) => valuesOf(one) !== undefined) ? alternatives.flatMap((one) => valuesOf(one) ?? []) : undefined
  items[name] = { types, ...(values && { values }), ...(isRequired && { required: true }) }
  for (const variable of schema['x-env'] ?? []) items[`environment ${variable}`] = {}
  const objects = alternatives.filter(({ properties, additionalProperties }) => properties ?? additionalProperties)
  const below = (schema: JsonSchema, name: string, isRequired = false) =>
    add(items, { name, schema, references, isRequired, depth: depth + 1 })
  for (const [tag, members] of Map.groupBy(objects, tagOf)) {
    if (tag !== undefined) items[`${name}(${tag})`] = {}
    addMembers(members, tag === undefined ? name : `${name}(${tag})`, below)
  }
  for (const { items: element } of alternatives) if (element) below(element, `${name}[]`)
}

type Below = (schema: JsonSchema, name: string, isRequired?: boolean) => void

/** Adds the members of objects. A member is required when each of the objects requires it. */
function addMembers(objects: readonly JsonSchema[], name: string, below: Below): void {
  const found = new Map<string, JsonSchema[]>()
  for (const { properties = {} } of objects)
    for (const [key, member] of Object.entries(properties)) found.set(key, [...(found.get(key) ?? []), member])
  for (const [key, members] of found) {
    const [first, ...others] = members
    const isRequired = objects.every(({ required }) => required?.includes(key))
    if (first) below(others.length === 0 ? first : { anyOf: members }, name === '' ? key : `${name}.${key}`, isRequired)
  }
  for (const { additionalProperties: rest } of objects) if (typeof rest === 'object') below(rest, `${name}.*`)
}

/** Returns the constant member `type` of an object, by which a reader tells it from others. */
function tagOf({ properties }: JsonSchema): string | undefined {
  const tag = properties?.type?.const
  return typeof tag === 'string' ? tag : undefined
}

/** Resolves references and nested alternatives. */
function alternativesOf(schema: JsonSchema, references: References, depth = 0): JsonSchema[] {
  const { $ref, anyOf, oneOf } = schema
  const inner = $ref?.startsWith(PREFIX) ? [references[$ref.slice(PREFIX.length)] ?? {}] : (anyOf ?? oneOf)
  return inner && depth < DEPTH_MAX ? inner.flatMap((one) => alternativesOf(one, references, depth + 1)) : [schema]
}

function typesOf(schema: JsonSchema): readonly string[] {
  if (schema.type !== undefined) return [schema.type].flat()
  const values = valuesOf(schema)
  return values ? values.map((value) => (value === null ? 'null' : typeof value)) : ['any']
}

function valuesOf({ type, const: only, enum: some }: JsonSchema): readonly unknown[] | undefined {
  if (some) return some
  if (only !== undefined) return [only]
  return type === 'null' ? [null] : undefined
}
