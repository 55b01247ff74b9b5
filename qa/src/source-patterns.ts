/** Finds the regular expressions of a source file in its syntax tree: literals and constructions. */
import { stripTypeScriptTypes } from 'node:module'
import { type Node, parse } from 'acorn'

/** The regular expressions of one file. */
export interface SourcePatterns {
  readonly literals: readonly { readonly source: string; readonly flags: string; readonly line: number }[]
  /** The text of each `new RegExp(…)` or `RegExp(…)`. */
  readonly constructed: readonly string[]
}

/** Parses a TypeScript source. */
export function sourcePatterns(typescript: string): SourcePatterns {
  const javascript = stripTypeScriptTypes(typescript)
  const literals: SourcePatterns['literals'][number][] = []
  const constructed: string[] = []
  for (const node of nodesOf(parse(javascript, { ecmaVersion: 'latest', sourceType: 'module', locations: true }))) {
    const { regex, callee } = node as Node & { regex?: { pattern: string; flags: string }; callee?: Node & { name?: string } }
    if (regex) literals.push({ source: regex.pattern, flags: regex.flags, line: node.loc?.start.line ?? 0 })
    else if (callee?.name === 'RegExp') constructed.push(javascript.slice(node.start, node.end))
  }
  return { literals, constructed }
}

function* nodesOf(value: unknown): Generator<Node> {
  if (typeof value !== 'object' || value === null) return
  if ('type' in value && 'start' in value) yield value as Node
  for (const child of Object.values(value)) yield* nodesOf(child)
}
