/**
 * Reduces the JSON Schema of a tool to a form that every model API accepts. One schema that an API rejects would fail each turn, also
 * turns that never use the tool.
 */

type Json = Readonly<Record<string, unknown>>

const DEPTH_MAX = 12
const NODES_MAX = 1000
const TEXT_CHARS_MAX = 500
const PROPERTY_NAME = /^[\w.-]{1,64}$/
const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']
const NUMBERS = ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems']

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Returns an object schema without references, patterns and unknown keywords. The omitted parts only describe the input to the model: the
 * server itself checks each call. A schema that refers to itself or is very large allows any value from some depth on.
 */
export function inputSchema(schema: unknown): Json {
  const reduced = isObject(schema) ? new Reduction(schema).node(schema, 0, new Set()) : {}
  const { properties = {}, required, description } = reduced
  const hasRequired = Array.isArray(required) && required.length > 0
  return { type: 'object', properties, ...(hasRequired && { required }), ...(description !== undefined && { description }) }
}

class Reduction {
  readonly #root: Json
  #nodes = 0

  constructor(root: Json) {
    this.#root = root
  }

  /** `within` has the references that lead to this node. */
  node(given: unknown, depth: number, within: ReadonlySet<string>): Json {
    if (!isObject(given) || depth > DEPTH_MAX || ++this.#nodes > NODES_MAX) return {}
    const { $ref } = given
    if (typeof $ref === 'string') {
      const target = within.has($ref) ? undefined : this.#target($ref)
      return target ? this.node(target, depth + 1, new Set(within).add($ref)) : {}
    }
    // How some generators attach a description to a reference.
    if (Array.isArray(given.allOf) && given.allOf.length === 1) {
      const { allOf, ...rest } = given
      return this.node({ ...(isObject(allOf[0]) ? allOf[0] : {}), ...rest }, depth + 1, within)
    }
    const child = (schema: unknown) => this.node(schema, depth + 1, within)
    const variants = given.anyOf ?? given.oneOf
    return {
      ...typeOf(given.type),
      ...(typeof given.description === 'string' && { description: given.description.slice(0, TEXT_CHARS_MAX).toWellFormed() }),
      ...valuesOf(given),
      ...Object.fromEntries(NUMBERS.flatMap((name) => (Number.isFinite(given[name]) ? [[name, given[name]]] : []))),
      ...(isObject(given.properties) && this.#properties(given.properties, given.required, child)),
      ...(given.type === 'array' && { items: child(given.items) }),
      ...(isObject(given.additionalProperties) && given.type === 'object' && { additionalProperties: child(given.additionalProperties) }),
      ...(Array.isArray(variants) && variants.length > 0 && { anyOf: variants.map(child) }),
    }
  }

  #properties(given: Json, required: unknown, child: (schema: unknown) => Json): Json {
    const names = Object.keys(given).filter((name) => PROPERTY_NAME.test(name))
    const needed = Array.isArray(required) ? names.filter((name) => required.includes(name)) : []
    return {
      properties: Object.fromEntries(names.map((name) => [name, child(given[name])])),
      ...(needed.length > 0 && { required: needed }),
    }
  }

  /** Follows a reference within the schema, such as `#/$defs/point`. */
  #target(reference: string): unknown {
    if (reference === '#') return this.#root
    if (!reference.startsWith('#/')) return undefined
    const steps = reference.slice(2).split('/', DEPTH_MAX)
    return steps.reduce<unknown>((at, step) => (isObject(at) && Object.hasOwn(at, step) ? at[step] : undefined), this.#root)
  }
}

function typeOf(type: unknown): Json {
  if (typeof type === 'string' && TYPES.includes(type)) return { type }
  // Several APIs know only one type in each place; `null` says no more than that a property may be left out.
  const [only, ...more] = Array.isArray(type) ? type.filter((one) => TYPES.includes(one) && one !== 'null') : []
  return only !== undefined && more.length === 0 ? { type: only } : {}
}

function valuesOf({ enum: values, const: value, default: preset }: Json): Json {
  const isPlain = (one: unknown) => ['string', 'number', 'boolean'].includes(typeof one)
  const options = Array.isArray(values) ? values.filter(isPlain) : isPlain(value) ? [value] : []
  return { ...(options.length > 0 && { enum: options.slice(0, NODES_MAX) }), ...(isPlain(preset) && { default: preset }) }
}
