/**
 * Reduces topic filters to the fewest that match the same topics, because a broker may deliver a message once per matching
 * subscription.
 */

interface Node {
  readonly children: Map<string, Node>
  /** Whether a filter ends at this level. */
  isEnd: boolean
  /** Whether a filter has `#` at the next level. */
  hasHash: boolean
}

const newNode = (): Node => ({ children: new Map(), isEnd: false, hasHash: false })

/**
 * Returns the filters that no other filter covers, sorted. A tree of levels keeps the work nearly linear in the number of
 * filters.
 */
export function widestFilters(filters: readonly string[]): string[] {
  const root = newNode()
  const distinct = [...new Set(filters)]
  for (const filter of distinct) add(root, filter.split('/'))
  return distinct.filter((filter) => !isCovered(root, filter)).sort()
}

function add(root: Node, levels: readonly string[]): void {
  let node = root
  for (const level of levels) {
    if (level === '#') {
      node.hasHash = true
      return
    }
    const next = node.children.get(level) ?? newNode()
    node.children.set(level, next)
    node = next
  }
  node.isEnd = true
}

/** Whether another filter matches every topic that this one matches. */
function isCovered(root: Node, filter: string): boolean {
  /** The nodes that match the levels so far. `isOwnPath` marks the node that the filter itself leads to. */
  let nodes = [{ node: root, isOwnPath: true }]
  for (const [depth, level] of filter.split('/').entries()) {
    // A wildcard at the first level does not match topics such as `$SYS`, which belong to the broker.
    const isHidden = depth === 0 && filter.startsWith('$')
    const next: typeof nodes = []
    for (const { node, isOwnPath } of nodes) {
      if (node.hasHash && !isHidden && !(isOwnPath && level === '#')) return true
      const byName = node.children.get(level)
      if (byName) next.push({ node: byName, isOwnPath })
      const byPlus = level === '+' || level === '#' || isHidden ? undefined : node.children.get('+')
      if (byPlus) next.push({ node: byPlus, isOwnPath: false })
    }
    nodes = next
  }
  return nodes.some(({ node, isOwnPath }) => node.hasHash || (node.isEnd && !isOwnPath))
}
