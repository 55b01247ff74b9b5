/**
 * Reads the input of a tool call as the model meant it. Models are trained with the tools of other programs, and write their names for the
 * same members, numbers as texts, and one item in place of a list. An input that fits the schema of its tool stays as it is.
 */
import type { GenericSchema } from 'valibot'
import { commandLine } from './command-line.ts'

type Given = Readonly<Record<string, unknown>>
type Entries = Readonly<Record<string, GenericSchema>>

/** What the schemas of objects, lists and optional members have beside their type. */
type Shape = GenericSchema & { readonly entries?: Entries; readonly item?: GenericSchema; readonly wrapped?: GenericSchema }

/** Other programs' names for a member, in lower case and without `_` and `-`. */
const OTHER_NAMES = new Map([
  ['path', ['file', 'filepath', 'filename', 'absolutepath', 'targetfile', 'directory', 'dir', 'folder']],
  ['command', ['cmd', 'commandline', 'script', 'bash']],
  ['content', ['contents', 'text', 'filetext', 'filecontent', 'value']],
  ['old_text', ['oldstring', 'oldstr', 'old', 'search', 'find']],
  ['new_text', ['newstring', 'newstr', 'new', 'replace', 'replacement']],
  ['all', ['replaceall']],
  ['pattern', ['query', 'regex', 'regexp']],
  ['glob', ['include', 'filepattern']],
  ['limit', ['maxresults', 'headlimit', 'numresults']],
  ['query', ['q', 'search', 'searchquery', 'keywords']],
  ['url', ['uri', 'link', 'href', 'address']],
  ['text', ['message', 'content']],
  ['key', ['name']],
  ['skill', ['name', 'skillname']],
  ['id', ['jobid', 'bashid', 'shellid', 'reminderid', 'taskid']],
  ['name', ['tool', 'toolname']],
  ['input', ['arguments', 'args', 'parameters', 'params']],
])

/** Returns the input that is meant. The result may still not fit the schema. */
export function inputAsMeant(schema: GenericSchema, given: unknown): unknown {
  const { type, entries, item, wrapped } = schema as Shape
  if (wrapped) return inputAsMeant(wrapped, given)
  if (entries) {
    const object = typeof given === 'string' ? parsedText(given) : given
    return isObject(object) ? objectAsMeant(schema, entries, object) : given
  }
  if (item) {
    const list = listAsMeant(item, given)
    return list ? list.map((one) => inputAsMeant(item, one)) : given
  }
  if (typeof given !== 'string') return given
  if (type === 'number') return given.trim() !== '' && Number.isFinite(Number(given)) ? Number(given) : given
  if (type === 'boolean') return BOOLEANS.get(given.trim().toLowerCase()) ?? given
  return given
}

const BOOLEANS = new Map([
  ['true', true],
  ['false', false],
])

/** Returns the members of the schema of an object; undefined for the schema of anything else. */
export const entriesOf = (schema: GenericSchema): Entries | undefined => {
  const { entries, wrapped } = schema as Shape
  return wrapped ? entriesOf(wrapped) : entries
}

/** Whether an object has only the members of its schema. The schema of an optional object is wrapped, and counts as open. */
export const isClosed = ({ type }: GenericSchema): boolean => type === 'object' || type === 'strict_object'

/** Returns the schema of the items of a list; undefined for the schema of anything else. */
export const itemOf = (schema: GenericSchema): GenericSchema | undefined => {
  const { item, wrapped } = schema as Shape
  return wrapped ? itemOf(wrapped) : item
}

export const isObject = (given: unknown): given is Given => typeof given === 'object' && given !== null && !Array.isArray(given)

function objectAsMeant(schema: GenericSchema, entries: Entries, given: Given): Given {
  const named = isClosed(schema) ? withoutList(entries, withMeantNames(entries, given)) : given
  const members = Object.entries(named).flatMap(([name, value]): [string, unknown][] => {
    const schema = Object.hasOwn(entries, name) ? entries[name] : undefined
    if (!schema) return [[name, value]]
    if (value === null && schema.type === 'optional') return []
    const meant = name === 'command' && schema.type === 'string' && Array.isArray(value) ? (commandLine(value) ?? value) : value
    return [[name, inputAsMeant(schema, meant)]]
  })
  return Object.fromEntries(members)
}

/** Returns the object with the schema's name for each member that it names otherwise, unless the name is there or several could be meant. */
function withMeantNames(entries: Entries, given: Given): Given {
  const others = Object.keys(given).filter((name) => !Object.hasOwn(entries, name))
  const names = new Map<string, string>()
  for (const name of Object.keys(entries)) {
    const [meant, ...more] = Object.hasOwn(given, name) ? [] : others.filter((other) => !names.has(other) && means(other, name))
    if (meant !== undefined && more.length === 0) names.set(meant, name)
  }
  return names.size === 0 ? given : Object.fromEntries(Object.entries(given).map(([name, value]) => [names.get(name) ?? name, value]))
}

function means(other: string, name: string): boolean {
  const plain = plainName(other)
  return plain === plainName(name) || OTHER_NAMES.get(name)?.includes(plain) === true
}

const plainName = (name: string): string => name.toLowerCase().replaceAll('_', '').replaceAll('-', '')

/** Returns the object with a list of one item where the members of the item stand beside the others. */
function withoutList(entries: Entries, given: Given): Given {
  const missing = Object.keys(entries).filter((name) => entries[name]?.type === 'array' && !Object.hasOwn(given, name))
  const [list = ''] = missing
  const item = entries[list] && itemOf(entries[list])
  const inner = item && isClosed(item) && entriesOf(item)
  if (missing.length !== 1 || !inner) return given
  const own = Object.entries(given).filter(([name]) => Object.hasOwn(entries, name))
  const others = withMeantNames(inner, Object.fromEntries(Object.entries(given).filter(([name]) => !Object.hasOwn(entries, name))))
  if (!Object.keys(others).some((name) => Object.hasOwn(inner, name))) return given
  return { ...Object.fromEntries(own), [list]: [others] }
}

function listAsMeant(item: GenericSchema, given: unknown): readonly unknown[] | undefined {
  const list = typeof given === 'string' ? parsedText(given) : given
  if (Array.isArray(list)) return list
  return entriesOf(item) && isObject(list) ? [list] : undefined
}

/** Returns the list or the object of a text of JSON; undefined for any other text. */
function parsedText(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
