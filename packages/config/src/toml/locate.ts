/** Where in the file a finding stands. Loads the exact parser, so it is called only when there is something to report. */
import { formatKeyPath, type KeyPath } from './key-path.ts'
import { withoutMark } from './parse-toml.ts'
import type { Finding, TomlProblem } from './problem.ts'
import { syntaxProblem } from './syntax-problem.ts'
import { childOf, type Place, readDocument } from './toml-document.ts'

/** Gives each finding its line and column. A file the exact parser refuses is one problem more. */
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

/** From 1. Of a key that is not there: of the table it is missing from. */
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
