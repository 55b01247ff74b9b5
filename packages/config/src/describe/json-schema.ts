/** Makes the JSON Schema of the whole file, for editors and `sluice config schema`. */

import type { ConversionConfig, JsonSchema } from '@valibot/to-json-schema'
import { type SectionTask, TASKS, taskOfSection } from '../sections/section-tasks.ts'
import { childKey, type Key, readKey } from '../toml/schema-keys.ts'
import type { OwnedSection } from '../types.ts'

type Definition = Exclude<JsonSchema, boolean>

interface Table extends Definition {
  readonly properties: Record<string, Definition>
}

/**
 * Unknown names are not allowed at any depth. `x-env` lists the environment variables of a key, and `x-env-wins` means that
 * they override the file. A secret is `writeOnly`. A key that the environment may supply is not required. `x-tasks` lists the tasks by
 * which people look for settings; a table that belongs to one has its id in `x-task` and its words in `title`. `x-restart` means that a
 * key takes effect at the next start.
 */
export async function configSchema(sections: readonly OwnedSection[]): Promise<object> {
  const { toJsonSchema } = await import('@valibot/to-json-schema')
  const root = newTable()
  for (const { owner, section } of sections) {
    const {
      properties = {},
      required = [],
      additionalProperties,
    } = marked(toJsonSchema(section.schema, CONVERSION), readKey(section.schema))
    const table = tableAt(root, section.path)
    Object.assign(table.properties, properties)
    if (typeof additionalProperties === 'object') table.additionalProperties = additionalProperties
    if (required.length > 0) table.required = [...new Set([...(table.required ?? []), ...required])]
    addTask(table, taskOfSection(section.path, owner))
    for (const [name, child] of Object.entries(properties)) addTask(child as Table, taskOfSection(`${section.path}.${name}`))
  }
  const tasks = Object.entries(TASKS).map(([id, task]) => ({ id, ...task }))
  return { $schema: 'http://json-schema.org/draft-07/schema#', title: 'Sluice configuration', 'x-tasks': tasks, ...root }
}

/** The first owner of a table names it. */
function addTask(table: Table, entry: SectionTask | undefined): void {
  if (!entry || table.title !== undefined) return
  const { task, title, restart = [] } = entry
  Object.assign(table, { title, 'x-task': task })
  const names = restart === true ? Object.keys(table.properties) : restart
  for (const name of names) Object.assign(table.properties[name] ?? {}, { 'x-restart': true })
}

const CONVERSION: ConversionConfig = {
  typeMode: 'input',
  // The loader performs the checks that JSON Schema cannot express. Metadata after a transformation would be lost here.
  errorMode: 'ignore',
  ignoreActions: ['metadata'],
  overrideSchema: ({ valibotSchema, jsonSchema }) =>
    valibotSchema.type === 'object' ? { ...jsonSchema, additionalProperties: false } : undefined,
}

const newTable = (): Table => ({ type: 'object', properties: {}, additionalProperties: false })

function tableAt(root: Table, path: string): Table {
  let table = root
  for (const name of path.split('.')) {
    const next = (table.properties[name] as Table | undefined) ?? newTable()
    table.properties[name] = next
    table = next
  }
  return table
}

/** Returns the definition with the metadata of the key and of all keys below it. */
function marked(definition: Definition, key: Key): Definition {
  const { env, envWins, secret } = key.metadata
  const below = (child: unknown, step: string | number): Definition => {
    const inner = childKey(key, step)
    return inner && typeof child === 'object' ? marked(child as Definition, inner) : (child as Definition)
  }
  const { properties, required, items, additionalProperties: rest } = definition
  const given = required?.filter((name) => !childKey(key, name)?.metadata.env?.length) ?? []
  const { required: _, ...others } = definition
  return {
    ...others,
    ...(key.meaning !== undefined && { description: key.meaning }),
    ...(secret && { writeOnly: true }),
    ...(env && { 'x-env': [...env] }),
    ...(envWins && { 'x-env-wins': true }),
    ...(properties && { properties: Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, below(child, name)])) }),
    ...(given.length > 0 && { required: given }),
    ...(items && !Array.isArray(items) && { items: below(items, 0) }),
    ...(typeof rest === 'object' && key.shape.kind === 'table' && key.shape.rest && { additionalProperties: marked(rest, key.shape.rest) }),
  }
}
