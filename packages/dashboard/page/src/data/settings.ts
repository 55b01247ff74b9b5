/** The settings of the configuration, grouped by task, from the JSON Schema of its file. */
export interface Task {
  readonly id: string
  readonly title: string
  readonly about: string
}

export interface Schema {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly title?: string
  readonly description?: string
  readonly default?: unknown
  readonly writeOnly?: boolean
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly 'x-task'?: string
  /** Whether the key takes effect at the next start. */
  readonly 'x-restart'?: boolean
  readonly 'x-tasks'?: readonly Task[]
}

export interface Setting {
  readonly key: string
  readonly name: string
  readonly schema: Schema
}

/** The settings of one table. */
export interface Part {
  readonly path: string
  readonly settings: readonly Setting[]
}

/** Settings that a person makes together: a table with the tables in it. */
export interface Section {
  readonly path: string
  readonly title: string
  readonly task: string
  readonly parts: readonly Part[]
  /** The tables in it whose names a person chooses, and that do not exist yet. */
  readonly unnamed: readonly string[]
}

/** The value in force. */
export interface Known {
  readonly key: string
  readonly value: unknown
  readonly source: 'file' | 'environment' | 'default'
}

/** Returns the existing names in a table of any name. */
type NamesAt = (path: string) => readonly string[]

const isTable = ({ properties }: Schema): boolean => properties !== undefined

const pathBelow = (path: string, name: string): string =>
  path === '' ? name : `${path}.${/^[\w-]+$/.test(name) ? name : JSON.stringify(name)}`

/** The schema of each table of a table whose names are free, such as the servers of MCP. */
const namedTable = ({ additionalProperties: rest }: Schema): Schema | undefined =>
  typeof rest === 'object' && rest.properties !== undefined ? rest : undefined

/** Returns the tables of the schema that have keys of their own, in its order. */
function partsOf(schema: Schema, namesAt: NamesAt, path: string): Part[] {
  const entries = Object.entries(schema.properties ?? {})
  const settings = entries
    .filter(([, value]) => !isTable(value) && !namedTable(value))
    .map(([name, value]) => ({ key: pathBelow(path, name), name, schema: value }))
  const named = namedTable(schema)
  return [
    ...(settings.length > 0 ? [{ path, settings }] : []),
    ...(named ? namesAt(path).flatMap((name) => partsOf(named, namesAt, pathBelow(path, name))) : []),
    ...entries.flatMap(([name, value]) => (startsSection(value) ? [] : partsOf(value, namesAt, pathBelow(path, name)))),
  ]
}

const unnamedIn = (schema: Schema, namesAt: NamesAt, path: string): string[] => [
  ...(namedTable(schema) && namesAt(path).length === 0 ? [path] : []),
  ...Object.entries(schema.properties ?? {}).flatMap(([name, value]) =>
    startsSection(value) ? [] : unnamedIn(value, namesAt, pathBelow(path, name)),
  ),
]

const startsSection = (schema: Schema): boolean => schema['x-task'] !== undefined

/** Returns every section of the schema. */
export function sectionsOf(schema: Schema, namesAt: NamesAt, path = ''): Section[] {
  const task = schema['x-task']
  const own = task === undefined ? [] : [sectionAt(schema, { path, task, namesAt })]
  return [
    ...own,
    ...Object.entries(schema.properties ?? {}).flatMap(([name, value]) =>
      isTable(value) ? sectionsOf(value, namesAt, pathBelow(path, name)) : [],
    ),
  ]
}

const sectionAt = (schema: Schema, at: { readonly path: string; readonly task: string; readonly namesAt: NamesAt }): Section => ({
  path: at.path,
  title: schema.title ?? at.path,
  task: at.task,
  parts: partsOf(schema, at.namesAt, at.path),
  unnamed: unnamedIn(schema, at.namesAt, at.path),
})

export const settingsOf = ({ parts }: Section): readonly Setting[] => parts.flatMap(({ settings }) => settings)

/** Returns the section that has this path, or that the table with this path is in. */
export const sectionAround = (sections: readonly Section[], path: string): Section | undefined =>
  sections
    .filter((section) => path === section.path || path.startsWith(`${section.path}.`))
    .reduce<Section | undefined>((inner, one) => (inner && inner.path.length > one.path.length ? inner : one), undefined)

/** Tells whether the value in force was set to another one than the default. The value of a secret is not known. */
export const differs = ({ schema }: Setting, known: Known | undefined): boolean =>
  known !== undefined &&
  known.source !== 'default' &&
  (schema.writeOnly === true || JSON.stringify(known.value) !== JSON.stringify(schema.default))

/** Returns what tells whether a setting has all words of a query in its key, its words, its description or its value. */
export function finder(query: string, knownAt: ReadonlyMap<string, Known>): (section: Section, setting: Setting) => boolean {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean)
  return ({ title }, { key, name, schema }) => {
    const value = schema.writeOnly ? undefined : (knownAt.get(key)?.value ?? schema.default)
    const text = [title, key, wordsOf(name), schema.description, fieldText(schema, value)].join('\n').toLowerCase()
    return wanted.every((word) => text.includes(word))
  }
}

const SHORT = ['api', 'url', 'id', 'tls', 'usd', 'mcp', 'ca', 'http', 'imap', 'smtp', 'sasl', 'aes', 'i2c', 'spi', 'gdb', 'ws']
const WORDS: Readonly<Record<string, string>> = { ids: 'IDs', ...Object.fromEntries(SHORT.map((name) => [name, name.toUpperCase()])) }
const UNITS: Readonly<Record<string, string>> = {
  ms: 'milliseconds',
  secs: 'seconds',
  mins: 'minutes',
  hours: 'hours',
  days: 'days',
  kb: 'kilobytes',
  mb: 'megabytes',
  chars: 'characters',
}

/** The name of a key in words, such as `Timeout (seconds)`. */
export function wordsOf(name: string): string {
  const words = name.split('_')
  const unit = words.length > 1 ? UNITS[words.at(-1) ?? ''] : undefined
  const text = (unit === undefined ? words : words.slice(0, -1)).map((word) => WORDS[word] ?? word).join(' ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${unit === undefined ? '' : ` (${unit})`}`
}

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
