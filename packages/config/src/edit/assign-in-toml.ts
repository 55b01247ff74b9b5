/** Writes one value into a TOML text and keeps every other byte: comments, order, spacing and line ends. */
import { AppError } from '@sluice/sdk'
import type { AST } from 'toml-eslint-parser'
import { formatKeyPath, formatName, type KeyPath } from '../toml/key-path.ts'
import { childOf, endOfTable, type Place, readDocument } from '../toml/toml-document.ts'
import { applyEdit, type Edit, insertion, lineEnd, lineStart, newLine } from './edit-lines.ts'
import { writeHeader } from './write-toml.ts'

/** The value to write: `literal` at `path`. The first `section` names of the path are a section. */
export interface Assignment {
  readonly path: KeyPath
  readonly literal: string
  readonly section: number
}

/** Returns the text without a byte order mark and with the value. Throws `invalid_request` when the value has no place in the file. */
export async function assignInToml(text: string, assignment: Assignment): Promise<string> {
  const root = await readDocument(text)
  return applyEdit(text, await assign(text, root, assignment))
}

async function assign(text: string, root: Place, { path, literal, section }: Assignment): Promise<Edit> {
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
  const table = `${await writeHeader(headerSteps(path.slice(0, depth)))}${line}${pair(path.slice(depth), literal)}`
  return below ? beforeHeader(text, below, `${table}${line}${line}`) : atEnd(text, table)
}

function replacement({ node }: Place, path: KeyPath, literal: string): Edit {
  if (node) return { start: node.range[0], end: node.range[1], text: literal }
  throw new AppError('invalid_request', `\`${formatKeyPath(path)}\` is written as a table of its own in the file; set its keys one by one`)
}

/** Returns `a.b = literal`. An index of a list that does not exist yet makes a list with one entry. */
function pair(path: KeyPath, literal: string): string {
  const entry = path.findIndex((step) => typeof step === 'number')
  if (entry < 0) return `${names(path)} = ${literal}`
  if (path[entry] !== 0) throw gap(path)
  const inner = path.slice(entry + 1)
  return `${names(path.slice(0, entry))} = [${inner.length > 0 ? `{ ${pair(inner, literal)} }` : literal}]`
}

const names = (path: KeyPath): string => path.map((step) => formatName(String(step))).join('.')
/** A header refers to the last entry of every list on its path. */
const headerSteps = (path: KeyPath): string[] => path.filter((step) => typeof step === 'string')
const headerNames = (path: KeyPath): string => names(headerSteps(path))
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
    return insertion(last ? lineEnd(text, endOfTable(last)) : text.length, added)
  }
  const added = inner.length > 0 ? `{ ${pair(inner, literal)} }` : literal
  const last = place.items.at(-1)?.node
  if (last) return insertion(last.range[1], `, ${added}`)
  if (!place.node) throw new AppError('invalid_request', `\`${formatKeyPath(path)}\` is a table in the file; set its keys one by one`)
  return insertion(place.node.range[1] - 1, added)
}

/** Adds to a table that a dotted key defined, which only another dotted key can do. */
function besideDotted(text: string, { statement, names: count }: Place['through'][number], added: string): Edit {
  const prefix = text.slice(statement.range[0], statement.key.keys[count - 1]?.range[1])
  if (statement.parent.type === 'TOMLInlineTable') return insertion(statement.range[1], `, ${prefix}.${added}`)
  return afterStatement(text, statement, `${prefix}.${added}`)
}

/** Adds a line with the same indentation. */
function afterStatement(text: string, statement: AST.TOMLKeyValue | AST.TOMLTable, added: string): Edit {
  const indent = /^[ \t]*/.exec(text.slice(lineStart(text, statement.range[0])))?.[0] ?? ''
  const end = statement.type === 'TOMLTable' ? statement.key.range[1] : statement.range[1]
  return insertion(lineEnd(text, end), `${newLine(text)}${indent}${added}`)
}

/** Inserts above the header and its comments. */
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
