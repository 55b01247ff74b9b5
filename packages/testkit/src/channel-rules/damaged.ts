/** Damages JSON for tests of parsers. */

/** Values of all types. The last one throws when it is converted to a text. */
const OTHERS: readonly unknown[] = [undefined, null, 0, '', [], {}, true, 'x', { toString: 0 }]

/** Returns the JSON with each member removed or replaced by a value of another type; empty if the text is not JSON. */
export function damaged(json: string): string[] {
  let root: unknown
  try {
    root = JSON.parse(json)
  } catch {
    return []
  }
  const results: string[] = []
  const visit = (value: unknown) => {
    if (typeof value !== 'object' || value === null) return
    const parent = value as Record<string, unknown>
    for (const key of Object.keys(parent)) {
      const kept = parent[key]
      for (const other of OTHERS) {
        parent[key] = other
        results.push(JSON.stringify(root))
      }
      parent[key] = kept
      visit(kept)
    }
  }
  visit(root)
  return results
}
