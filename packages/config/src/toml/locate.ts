/** Locates findings in the file. Loads the exact parser, so call it only when there is something to report. */
import { formatKeyPath, type KeyPath } from './key-path.ts'
import { withoutMark } from './parse-toml.ts'
import type { Finding, TomlProblem } from './problem.ts'
import { syntaxProblem } from './syntax-problem.ts'
import { childOf, type Place, readDocument } from './toml-document.ts'

/** Returns the findings with line and column. A file that the exact parser refuses adds a problem. */
export async function locateFindings(file: string, text: string | undefined, findings: readonly Finding[]): Promise<TomlProblem[]> {
  const body = withoutMark(text ?? '')
  let root: Place | undefined
  const refused: TomlProblem[] = []
  try {
    root = await readDocument(body)
  } catch (error) {
    refused.push(await syntaxProblem(file, body, error))
  }
  const problems = findings.map(({ path, at, message }) => ({
    file,
    ...(root && at !== 'nowhere' && position(root, path, at)),
    key: formatKeyPath(path),
    message,
  }))
  return [...refused, ...problems]
}

/** Returns line and column, counted from 1. A missing key has the position of the table that should contain it. */
function position(root: Place, path: KeyPath, at: 'name' | 'value'): { line: number; column: number } | undefined {
  let deepest = root
  const trail = [root]
  for (const step of path) {
    const next = childOf(deepest, step)
    if (!next) break
    deepest = next
    trail.push(next)
  }
  const found = trail.length > path.length
  for (const place of trail.toReversed()) {
    const node = (found && at === 'value' ? place.node : undefined) ?? place.header?.key ?? place.name ?? place.node
    if (node) return { line: node.loc.start.line, column: node.loc.start.column + 1 }
  }
  return undefined
}
