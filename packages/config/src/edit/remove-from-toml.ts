/** Removes a key, a table or an entry of a list from a TOML text and keeps every other line. */
import { AppError } from '@sluice/sdk'
import type { AST } from 'toml-eslint-parser'
import { formatKeyPath, type KeyPath } from '../toml/key-path.ts'
import { endOfTable, type Place, placeAt, readDocument } from '../toml/toml-document.ts'
import { afterBlank, applyEdit, type Edit, lineStart, nextLine } from './edit-lines.ts'

/** The text is parsed again for each statement. */
const STATEMENTS_MAX = 500

/**
 * Returns the text without the key or table; the same text when it does not exist. Throws `invalid_request` for a table with
 * more than `STATEMENTS_MAX` dotted keys and headers.
 */
export async function removeFromToml(text: string, path: KeyPath): Promise<string> {
  let current = text
  for (let steps = 0; steps < STATEMENTS_MAX; steps++) {
    const place = placeAt(await readDocument(current), path)
    const edit = place && removal(current, place)
    if (!edit) return current
    current = applyEdit(current, edit)
    // The next entry of the list now has the index of the removed one.
    if (typeof path.at(-1) === 'number' && place.below.length <= 1) return current
  }
  throw new AppError('invalid_request', `\`${formatKeyPath(path)}\` has too many parts to be removed at once`)
}

/** Removes one statement or header of a place; the next edit removes another. Headers are removed from the last to the first. */
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

/** Removes an entry with the comma before it, or with the comma after it when it is the first. */
function siblingRemoval(siblings: readonly AST.TOMLNode[], node: AST.TOMLNode): Edit {
  const index = siblings.indexOf(node)
  const before = siblings[index - 1]
  const after = siblings[index + 1]
  if (before) return { start: before.range[1], end: node.range[1], text: '' }
  return { start: node.range[0], end: after ? after.range[0] : node.range[1], text: '' }
}
