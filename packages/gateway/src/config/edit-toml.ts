/** Changes one key of a TOML text and leaves every other byte as it is: comments, order, spacing, line ends. */
import { AppError } from '@sluice/sdk'
import type { AST } from 'toml-eslint-parser'
import { formatKeyPath, formatName, type KeyPath } from './key-path.ts'
import { childOf, type Place, placeAt, readDocument } from './toml-document.ts'

/** Replaces the units from `start` to before `end`. */
interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** What is to be written: `literal` at `path`, whose first `section` names are a section's. */
export interface Assignment {
  readonly path: KeyPath
  readonly literal: string
  readonly section: number
}

const UNSET_STEPS_MAX = 10_000

/** The text, without a byte order mark, with the value in its place. Throws `invalid_request` where there is no place for it. */
export async function assignInToml(text: string, assignment: Assignment): Promise<string> {
  const root = await readDocument(text)
  return apply(text, assign(text, root, assignment))
}

/** The text without the key, or the table of that name with everything in it; the same text if it is not there. */
export async function removeFromToml(text: string, path: KeyPath): Promise<string> {
  let current = text
  for (let steps = 0; steps < UNSET_STEPS_MAX; steps++) {
    const place = placeAt(await readDocument(current), path)
    const edit = place && removal(current, place)
    if (!edit) return current
    current = apply(current, edit)
    // The next entry of a list has moved into the place of the one that is gone.
    if (typeof path.at(-1) === 'number' && place.below.length <= 1) return current
  }
  return current
}

const apply = (text: string, { start, end, text: inserted }: Edit): string => text.slice(0, start) + inserted + text.slice(end)
const insertion = (at: number, text: string): Edit => ({ start: at, end: at, text })

function assign(text: string, root: Place, { path, literal, section }: Assignment): Edit {
  const trail = [root]
  for (const step of path) {
    const next = childOf(trail.at(-1) ?? root, step)
    if (!next) break
    trail.push(next)
  }
  const known = trail.length - 1
  const place = trail[known] ?? root
  if (known === path.length) return replacement(place, path, literal)
  const rest = path.slice(known)
  if (place.kind === 'inline') return intoInline(place, pair(rest, literal))
  if (place.kind === 'list' || place.kind === 'tables') return intoList(text, place, { path, known, literal })
  if (place.kind === 'value') {
    throw new AppError('invalid_request', `\`${formatKeyPath(path.slice(0, known))}\` holds a value in the file, not a table`)
  }
  const line = newLine(text)
  const entries = rest.findIndex((step) => typeof step === 'number')
  const isPlain = trail.every(({ through, kind }) => through.length === 0 && kind === 'table')
  if (entries > 0 && rest[entries] === 0 && entries < rest.length - 1 && isPlain) {
    const header = `[[${headerNames(path.slice(0, known + entries))}]]`
    return atEnd(text, `${header}${line}${pair(rest.slice(entries + 1), literal)}`)
  }
  if (place.header) return afterStatement(text, place.header.body.at(-1) ?? place.header, pair(rest, literal))
  const sibling = place.through.at(-1)
  if (sibling) return besideDotted(text, sibling, pair(rest, literal))
  const [below] = known >= section ? place.below : []
  const depth = Math.max(known, section)
  const table = `[${headerNames(path.slice(0, depth))}]${line}${pair(path.slice(depth), literal)}`
  return below ? beforeHeader(text, below, `${table}${line}${line}`) : atEnd(text, table)
}

function replacement({ node }: Place, path: KeyPath, literal: string): Edit {
  if (node) return { start: node.range[0], end: node.range[1], text: literal }
  throw new AppError('invalid_request', `\`${formatKeyPath(path)}\` is written as a table of its own in the file; set its keys one by one`)
}

/** `a.b = literal`; a place in a list that is to be made becomes a list of one. */
function pair(path: KeyPath, literal: string): string {
  const entry = path.findIndex((step) => typeof step === 'number')
  if (entry < 0) return `${names(path)} = ${literal}`
  if (path[entry] !== 0) throw gap(path)
  const inner = path.slice(entry + 1)
  return `${names(path.slice(0, entry))} = [${inner.length > 0 ? `{ ${pair(inner, literal)} }` : literal}]`
}

const names = (path: KeyPath): string => path.map((step) => formatName(String(step))).join('.')
/** A header means the last entry of every list on its way. */
const headerNames = (path: KeyPath): string => names(path.filter((step) => typeof step === 'string'))
const gap = (path: KeyPath): AppError => new AppError('invalid_request', `\`${formatKeyPath(path)}\` leaves a gap in its list`)

function intoInline({ node }: Place, added: string): Edit {
  if (node?.type !== 'TOMLInlineTable') throw new TypeError('an inline table has a node')
  const last = node.body.at(-1)
  return last ? insertion(last.range[1], `, ${added}`) : { start: node.range[0], end: node.range[1], text: `{ ${added} }` }
}

function intoList(text: string, place: Place, { path, known, literal }: { path: KeyPath; known: number; literal: string }): Edit {
  if (path[known] !== place.items.length) throw gap(path)
  const inner = path.slice(known + 1)
  if (place.kind === 'tables' && inner.length > 0) {
    const line = newLine(text)
    const last = place.below.at(-1)
    const added = `${line}${line}[[${headerNames(path.slice(0, known))}]]${line}${pair(inner, literal)}`
    return insertion(last ? lineEnd(text, endOf(last)) : text.length, added)
  }
  const added = inner.length > 0 ? `{ ${pair(inner, literal)} }` : literal
  const last = place.items.at(-1)?.node
  if (last) return insertion(last.range[1], `, ${added}`)
  if (!place.node) throw new AppError('invalid_request', `\`${formatKeyPath(path)}\` is a table in the file; set its keys one by one`)
  return insertion(place.node.range[1] - 1, added)
}

/** A dotted key defined the table: another one beside it is the only way to add to it. */
function besideDotted(text: string, { statement, names: count }: Place['through'][number], added: string): Edit {
  const prefix = text.slice(statement.range[0], statement.key.keys[count - 1]?.range[1])
  if (statement.parent.type === 'TOMLInlineTable') return insertion(statement.range[1], `, ${prefix}.${added}`)
  return afterStatement(text, statement, `${prefix}.${added}`)
}

/** On a line of its own, indented alike. */
function afterStatement(text: string, statement: AST.TOMLKeyValue | AST.TOMLTable, added: string): Edit {
  const indent = /^[ \t]*/.exec(text.slice(lineStart(text, statement.range[0])))?.[0] ?? ''
  const end = statement.type === 'TOMLTable' ? headerEnd(statement) : statement.range[1]
  return insertion(lineEnd(text, end), `${newLine(text)}${indent}${added}`)
}

/** Above the header and the comments that belong to it. */
function beforeHeader(text: string, header: AST.TOMLTable, added: string): Edit {
  let start = lineStart(text, header.range[0])
  while (start > 0 && /^[ \t]*#/.test(text.slice(lineStart(text, start - 1), start))) start = lineStart(text, start - 1)
  return insertion(start, added)
}

function atEnd(text: string, table: string): Edit {
  const line = newLine(text)
  const gapBefore = text.trim() === '' ? '' : text.endsWith('\n') ? line : `${line}${line}`
  return insertion(text.length, `${gapBefore}${table}${line}`)
}

/** One statement or header of a place, gone; what is left of it is the next edit's. Headers go from the last, their own being first. */
function removal(text: string, place: Place): Edit | undefined {
  if (place.statement) return statementRemoval(text, place.statement)
  if (place.node) return entryRemoval(place.node)
  const dotted = place.through[0]
  if (dotted) return statementRemoval(text, dotted.statement)
  const header = place.below.at(-1)
  return header && { start: lineStart(text, header.range[0]), end: afterBlank(text, nextLine(text, endOf(header))), text: '' }
}

function statementRemoval(text: string, statement: AST.TOMLKeyValue): Edit {
  const { parent } = statement
  if (parent.type === 'TOMLInlineTable') return siblingRemoval(parent.body, statement)
  return { start: lineStart(text, statement.range[0]), end: nextLine(text, statement.range[1]), text: '' }
}

function entryRemoval(node: AST.TOMLContentNode): Edit {
  if (node.parent.type !== 'TOMLArray') throw new TypeError('only a list has entries')
  return siblingRemoval(node.parent.elements, node)
}

/** With the comma before it, or after it if it is the first. */
function siblingRemoval(siblings: readonly AST.TOMLNode[], node: AST.TOMLNode): Edit {
  const index = siblings.indexOf(node)
  const before = siblings[index - 1]
  const after = siblings[index + 1]
  if (before) return { start: before.range[1], end: node.range[1], text: '' }
  return { start: node.range[0], end: after ? after.range[0] : node.range[1], text: '' }
}

const newLine = (text: string): string => /\r?\n/.exec(text)?.[0] ?? '\n'
const lineStart = (text: string, at: number): number => (at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1)
const nextLine = (text: string, at: number): number => text.indexOf('\n', at) + 1 || text.length

const afterBlank = (text: string, at: number): number => at + (/^(?:[ \t]*\r?\n)*/.exec(text.slice(at))?.[0].length ?? 0)

/** Before the line's end, whichever kind it is. */
function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  if (end < 0) return text.length
  return text[end - 1] === '\r' ? end - 1 : end
}

/** The parser counts the statements below a header to the table; this is where the header itself ends. */
const headerEnd = (header: AST.TOMLTable): number => header.key.range[1]
const endOf = (header: AST.TOMLTable): number => header.body.at(-1)?.range[1] ?? headerEnd(header)
