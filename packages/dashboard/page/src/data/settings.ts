/** The sections of the configuration and their keys, from the JSON Schema of its file. */
export interface Schema {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly description?: string
  readonly default?: unknown
  readonly writeOnly?: boolean
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
}

export interface Setting {
  readonly key: string
  readonly name: string
  readonly schema: Schema
}

export interface Section {
  readonly path: string
  readonly settings: readonly Setting[]
}

const isTable = ({ properties }: Schema): boolean => properties !== undefined

/** Returns every table of the schema that has keys of its own, in the order of the schema. `names` has the existing names in tables of any name. */
export function sectionsOf(schema: Schema, names: (path: string) => readonly string[], path = ''): Section[] {
  const at = (name: string): string => (path === '' ? name : `${path}.${/^[\w-]+$/.test(name) ? name : JSON.stringify(name)}`)
  const entries = Object.entries(schema.properties ?? {})
  const settings = entries
    .filter(([, value]) => !isTable(value) && !isMap(value))
    .map(([name, value]) => ({ key: at(name), name, schema: value }))
  const tables = entries.flatMap(([name, value]) => {
    if (isTable(value)) return sectionsOf(value, names, at(name))
    const inner = isMap(value) ? (value.additionalProperties as Schema) : undefined
    return inner ? names(at(name)).flatMap((each) => sectionsOf(inner, names, `${at(name)}.${each}`)) : []
  })
  return [...(settings.length > 0 && path !== '' ? [{ path, settings }] : []), ...tables]
}

/** A table whose names are free and whose values are tables, such as the servers of MCP. */
const isMap = ({ additionalProperties }: Schema): boolean =>
  typeof additionalProperties === 'object' && additionalProperties.properties !== undefined

/** The text of a value in a field of a form. */
export const fieldText = ({ type }: Schema, value: unknown): string => {
  if (value === undefined || value === null) return ''
  if (type === 'array' && Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join('\n')
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
}

/** The value of the text of a field; null removes the key. Throws for text that is not JSON where it must be. */
export function fieldValue({ type, items }: Schema, text: string): unknown {
  if (text.trim() === '') return null
  if (type === 'boolean') return text === 'true'
  if (type === 'number' || type === 'integer') return Number(text)
  if (type === 'string') return text
  if (type === 'array' && items?.type === 'string')
    return text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '')
  return JSON.parse(text)
}
