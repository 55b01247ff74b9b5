/** The fewest topic filters that match the same topics: a broker may deliver a message once for each subscription it matches. */

interface Node {
  readonly below: Map<string, Node>
  /** A filter ends here. */
  isEnd: boolean
  /** A filter goes on with `#`. */
  isOpen: boolean
}

const newNode = (): Node => ({ below: new Map(), isEnd: false, isOpen: false })

/** Those that no other of them covers, sorted. Each is compared with those that begin like it, and not with all. */
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
      node.isOpen = true
      return
    }
    const next = node.below.get(level) ?? newNode()
    node.below.set(level, next)
    node = next
  }
  node.isEnd = true
}

/** True if another filter matches every topic that this one matches. */
function isCovered(root: Node, filter: string): boolean {
  /** `isItself`: the way to it is the filter's own. */
  let nodes = [{ node: root, isItself: true }]
  for (const [depth, level] of filter.split('/').entries()) {
    // A wildcard in front does not stand for what brokers say of themselves.
    const isHidden = depth === 0 && filter.startsWith('$')
    const next: typeof nodes = []
    for (const { node, isItself } of nodes) {
      if (node.isOpen && !isHidden && !(isItself && level === '#')) return true
      const byName = node.below.get(level)
      if (byName) next.push({ node: byName, isItself })
      const byAny = level === '+' || level === '#' || isHidden ? undefined : node.below.get('+')
      if (byAny) next.push({ node: byAny, isItself: false })
    }
    nodes = next
  }
  return nodes.some(({ node, isItself }) => node.isOpen || (node.isEnd && !isItself))
}
