/** Parses a TOML text and keeps the position of every part, for problems and for edits. Rejects everything that is not valid TOML 1.0. */
import type { AST } from 'toml-eslint-parser'
import type { KeyPath, KeyStep } from './key-path.ts'

/** A table or value that the text defines. Nodes have ranges; offsets count UTF-16 units. */
export interface Place {
  /** `table`: by headers or dotted keys. `tables`: by `[[…]]`. `inline` and `list`: a value with parts. `value`: one without. */
  readonly kind: 'table' | 'tables' | 'inline' | 'list' | 'value'
  /** The first occurrence of the name; the root and the entries of lists have none. */
  readonly name?: AST.TOMLBare | AST.TOMLQuoted
  /** The node of a value. */
  readonly node?: AST.TOMLContentNode
  /** The statement that sets the value. */
  readonly statement?: AST.TOMLKeyValue
  /** The `[header]` or `[[header]]` of the table. */
  header?: AST.TOMLTable
  /** The dotted keys that lead through the place, and the number of their names that lead to it. */
  readonly through: { readonly statement: AST.TOMLKeyValue; readonly names: number }[]
  /** The headers at or below the place, in order. */
  readonly below: AST.TOMLTable[]
  readonly keys: Map<string, Place>
  readonly items: Place[]
}

/** Parses a text without a byte order mark. Throws the `SyntaxError` of the parser with `lineNumber` and `column`. */
export async function readDocument(text: string): Promise<Place> {
  const { parseTOML } = await import('toml-eslint-parser')
  const [table] = parseTOML(text, { tomlVersion: '1.0' }).body
  const root = newPlace('table')
  for (const statement of table.body) {
    if (statement.type === 'TOMLKeyValue') addStatement(root, statement)
    else addTable(root, statement)
  }
  return root
}

export function placeAt(root: Place, path: KeyPath): Place | undefined {
  let place: Place | undefined = root
  for (const step of path) place = place && childOf(place, step)
  return place
}

export const childOf = (place: Place, step: KeyStep): Place | undefined =>
  typeof step === 'number' ? place.items[step] : place.keys.get(step)

/** Returns the offset after the last statement of a table, or after its header. The end that the parser reports may differ. */
export const endOfTable = ({ body, key }: AST.TOMLTable): number => body.at(-1)?.range[1] ?? key.range[1]

/** Returns the plain data of a place. Tables have no prototype, so that no key can reach one. */
export function dataOf(place: Place): unknown {
  const { node } = place
  if (place.kind === 'list' || place.kind === 'tables') return place.items.map(dataOf)
  if (node?.type !== 'TOMLValue') {
    const table: Record<string, unknown> = Object.create(null)
    for (const [name, child] of place.keys) table[name] = dataOf(child)
    return table
  }
  return node.kind === 'integer' && !Number.isSafeInteger(node.value) ? node.bigint : node.value
}

const newPlace = (kind: Place['kind'], rest: Partial<Place> = {}): Place => ({
  ...rest,
  kind,
  through: [],
  below: [],
  keys: new Map(),
  items: [],
})

const textOf = (name: AST.TOMLBare | AST.TOMLQuoted): string => (name.type === 'TOMLBare' ? name.name : name.value)

function addTable(root: Place, header: AST.TOMLTable): void {
  let place = root
  const last = header.key.keys.length - 1
  for (const [index, name] of header.key.keys.entries()) {
    const known = place.keys.get(textOf(name))
    const next = known ?? newPlace(header.kind === 'array' && index === last ? 'tables' : 'table', { name })
    if (!known) place.keys.set(textOf(name), next)
    next.below.push(header)
    if (next.kind === 'tables' && index === last) next.items.push(newPlace('table'))
    place = next.kind === 'tables' ? (next.items.at(-1) ?? next) : next
    if (place !== next) place.below.push(header)
  }
  place.header = header
  for (const statement of header.body) addStatement(place, statement)
}

function addStatement(table: Place, statement: AST.TOMLKeyValue): void {
  const names = statement.key.keys
  let place = table
  for (const [index, name] of names.entries()) {
    if (index === names.length - 1) {
      place.keys.set(textOf(name), valuePlace(statement.value, { name, statement }))
      return
    }
    const next = place.keys.get(textOf(name)) ?? newPlace('table', { name })
    place.keys.set(textOf(name), next)
    next.through.push({ statement, names: index + 1 })
    place = next
  }
}

function valuePlace(node: AST.TOMLContentNode, rest: Partial<Place> = {}): Place {
  if (node.type === 'TOMLArray') {
    const list = newPlace('list', { ...rest, node })
    list.items.push(...node.elements.map((element) => valuePlace(element)))
    return list
  }
  if (node.type === 'TOMLValue') return newPlace('value', { ...rest, node })
  const inline = newPlace('inline', { ...rest, node })
  for (const statement of node.body) addStatement(inline, statement)
  return inline
}
