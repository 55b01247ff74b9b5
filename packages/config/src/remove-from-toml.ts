/** Takes a key, a table or a list's entry out of a TOML text and leaves every other line as it is. */
import { AppError } from '@sluice/sdk'
import type { AST } from 'toml-eslint-parser'
import { afterBlank, applyEdit, type Edit, lineStart, nextLine } from './edit-lines.ts'
import { formatKeyPath, type KeyPath } from './toml/key-path.ts'
import { endOfTable, type Place, placeAt, readDocument } from './toml/toml-document.ts'

/** Each is found by reading the text anew. */
const STATEMENTS_MAX = 500

/**
 * The text without the key, or the table of that name with everything in it; the same text if it is not there. Throws
 * `invalid_request` for a table of more than `STATEMENTS_MAX` dotted keys and headers.
 */
export async function removeFromToml(text: string, path: KeyPath): Promise<string> {
  let current = text
  for (let steps = 0; steps < STATEMENTS_MAX; steps++) {
    const place = placeAt(await readDocument(current), path)
    const edit = place && removal(current, place)
    if (!edit) return current
    current = applyEdit(current, edit)
    // The next entry of a list has moved into the place of the one that is gone.
    if (typeof path.at(-1) === 'number' && place.below.length <= 1) return current
  }
  throw new AppError('invalid_request', `\`${formatKeyPath(path)}\` has too many parts to be removed at once`)
}

/** One statement or header of a place, gone; what is left of it is the next edit's. Headers go from the last, their own being first. */
function removal(text: string, place: Place): Edit | undefined {
  if (place.statement) return statementRemoval(text, place.statement)
  if (place.node) return entryRemoval(place.node)
  const dotted = place.through[0]
  if (dotted) return statementRemoval(text, dotted.statement)
  const header = place.below.at(-1)
  return header && { start: lineStart(text, header.range[0]), end: afterBlank(text, nextLine(text, endOfTable(header))), text: '' }
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
